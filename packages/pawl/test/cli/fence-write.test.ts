import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Bench, type Result } from './cli.ts';

const bench = new Bench();

const fenceWrite = (
  input: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Result> => {
  const running = bench.start(['fence-write', ...args], env);
  running.child.stdin?.end(input);
  return running.ended;
};
const content = (name: string) => readFileSync(bench.path(name), 'utf8');

describe('pawl fence-write', () => {
  it('S7: replaces a file under a current token, and refuses a lower one', async () => {
    const file = bench.path('app.conf');
    expect(await fenceWrite('port = 80\n', [file, '--token', '42'])).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    });
    const late = await fenceWrite('port = 1\n', [file, '--token', '41']);
    expect(late.code).toBe(1);
    expect(late.stderr).toContain('refused token 41, since it has honoured 42');
    expect(content('app.conf')).toBe('port = 80\n');
    // Bytes that are no text, and more of them than a pipe holds.
    const big = 'ü\u0000'.repeat(200_000);
    expect((await fenceWrite(big, [file], { PAWL_TOKEN: '43' })).code).toBe(0);
    expect(content('app.conf')).toBe(big);
    expect(readdirSync(bench.folder).sort()).toEqual(['app.conf', 'app.conf.pawl-fence']);
  });

  it('S8: --raise refuses older tokens from now on, and writes nothing', async () => {
    const file = bench.path('app.conf');
    await fenceWrite('old', [file, '--token', '1']);
    expect((await fenceWrite('not read', [file, '--raise', '--token', '2'])).code).toBe(0);
    expect((await fenceWrite('late', [file, '--token', '1'])).code).toBe(1);
    expect(content('app.conf')).toBe('old');
  });

  it('S7: in a command that pawl runs, the token is that of its lease; without any it is refused', async () => {
    const script = 'cd "$0" && $PAWL run app.conf -- sh -c "echo fenced | $PAWL fence-write app.conf"';
    const { code } = await bench.shell(script.replace('"$0"', `"${bench.folder}"`)).ended;
    expect(code).toBe(0);
    expect(content('app.conf')).toBe('fenced\n');
    const { code: without, stderr } = await fenceWrite('x', [bench.path('app.conf')], { PAWL_TOKEN: '' });
    expect(without).toBe(64);
    expect(stderr).toContain('--token is missing');
  });

  it('says what is wrong with a file that cannot be written', async () => {
    mkdirSync(bench.path('folder'));
    expect((await fenceWrite('x', [bench.path('folder'), '--token', '1'])).code).toBe(64);
    const { code, stderr } = await fenceWrite('x', [bench.path('none/file'), '--token', '1']);
    expect(code).toBe(69);
    expect(stderr).toMatch(/cannot be used: ENOENT/);
    expect(stderr).not.toContain(' at ');
  });
});
