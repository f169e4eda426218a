import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { Bench } from './cli.ts';

const bench = new Bench();

it('S7, S8: the demonstration shows a late write refused with the fence, and an update lost without it', async () => {
  const { code, stdout } = await bench.start(['demo'], { TMPDIR: bench.folder }).ended;
  const [, fenced = '', unfenced = ''] = stdout.split(/^With the fence$|^Without the fence$/m);
  expect(steps(fenced)).toEqual([
    'A holds the lock with token 1 and reads 100',
    'A has checked that it holds the lock, and is about to write',
    'A is stopped (SIGSTOP)',
    'B holds the lock with token N and reads 100',
    'B writes 150 with token N',
    'A goes on (SIGCONT), and does not know that its lease is over',
    'A is refused: token 1 is lower than N; it acquires the lock again',
    'A holds the lock with token N and reads 150',
    'A writes 350 with token N',
    'the account is at 350',
  ]);
  expect(steps(unfenced).slice(5)).toEqual([
    'A goes on (SIGCONT), and does not know that its lease is over',
    'A writes 300 with token 1',
    'A is told that its lease with token 1 is over: after the write',
    'the account is at 300',
  ]);
  expect(code).toBe(0);
  expect(readdirSync(bench.folder)).toEqual([]);
});

it('leaves no stopped process and no files behind where the demonstration is ended early', async () => {
  const demo = bench.start(['demo'], { TMPDIR: bench.folder });
  await demo.prints('is stopped (SIGSTOP)');
  demo.child.kill('SIGTERM');
  expect((await demo.ended).code).toBe(143);
  expect(readdirSync(bench.folder)).toEqual([]);
  while (bench.processes().length > 0) await new Promise((resolve) => setTimeout(resolve, 10));
});

/** The lines of the timeline without their times, and with N for every token but the first. */
function steps(story: string): string[] {
  const lines = story.split('\n').flatMap((line) => /^ +\d+ ms +(.*)$/.exec(line)?.[1] ?? []);
  return lines.map((line) => line.replaceAll(/ {2,}/g, ' ').replaceAll(/(token|than) (?!1\b)\d+/g, '$1 N'));
}
