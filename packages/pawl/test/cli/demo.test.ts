import { expect, it } from 'vitest';
import { Bench } from './cli.ts';

const bench = new Bench();

it('S7, S8: the demonstration shows a late write refused with the fence, and an update lost without it', async () => {
  const { code, stdout } = await bench.run('demo');
  const [, fenced = '', unfenced = ''] = stdout.split(/^With the fence$|^Without the fence$/m);
  expect(fenced).toMatch(/A {2}is refused: token 1 is lower than \d+/);
  expect(fenced).toMatch(/the account is at 350/);
  expect(unfenced).toMatch(/A {2}writes 300 with token 1/);
  expect(unfenced).not.toMatch(/refused/);
  expect(unfenced).toMatch(/the account is at 300/);
  expect(code).toBe(0);
});
