import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { connect } from '../../src/client/remote/connect.ts';
import { Fence } from '../../src/fences/index.ts';
import { Bench, type Running } from './cli.ts';

const bench = new Bench();
const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
/** The Node of the tests first, as npm does it. */
const PATH = `${dirname(process.execPath)}:${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`;

async function serve(...args: string[]): Promise<{ server: Running; url: string }> {
  const server = bench.start(['serve', '--port', '0', ...args]);
  const url = await expect
    .poll(() => /Serving \w+ at (\S+)/.exec(server.stdout)?.[1], { timeout: 30_000 })
    .toBeDefined()
    .then(() => /Serving \w+ at (\S+)/.exec(server.stdout)?.[1] ?? '');
  return { server, url };
}

describe('pawl serve', () => {
  it('S1: every other command works through it, and SIGTERM stops it without losing a grant', async () => {
    const { server, url } = await serve('--hint');
    await server.prints(`npx pawl run deploy --server ${url}`);
    const run = await bench.run('run', 'deploy', '--server', url, '--', 'sh', '-c', 'echo "$PAWL_TOKEN"');
    expect(run, run.stderr).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\n$/) });
    const pawl = await connect(url);
    const lease = await pawl.acquire('deploy', { ttlMs: 60_000 });
    expect(lease.token).toBeGreaterThan(BigInt(run.stdout.trim()));
    const ls = await bench.run('ls', '--server', url);
    expect(ls.stdout).toMatch(/^LOCK +HELD BY +WAITING\ndeploy/);
    const inspect = JSON.parse((await bench.run('inspect', 'deploy', '--json', '--server', url)).stdout);
    expect(inspect.holders).toMatchObject([{ token: String(lease.token) }]);
    const top = await bench.run('top', '--once', '--server', url);
    expect(top.stdout).toMatch(/1 locks in use, 1 held, 0 waiting\n\nLOCK.*\ndeploy/);
    // In the environment as well; a store that is named goes before it.
    const env = { PAWL_SERVER: url };
    expect((await bench.start(['ls'], env).ended).stdout).toContain('deploy');
    expect((await bench.start(['ls', '--db', bench.path('other.db')], env).ended).stdout).toContain(
      'No lock',
    );
    expect(await bench.run('ls', '--server', url, '--db', bench.path('other.db'))).toMatchObject({
      code: 64,
    });
    server.child.kill('SIGTERM');
    expect(await server.ended).toMatchObject({ code: 0 });
    // The grant is in the store, where the next server finds it.
    const held = JSON.parse((await bench.run('inspect', 'deploy', '--json')).stdout);
    expect(held.holders).toMatchObject([{ token: String(lease.token) }]);
    await pawl.close().catch(() => {});
  });

  it('the three lines that it prints work', async () => {
    const { server, url } = await serve('--hint');
    const printed = () =>
      server.stdout
        .split('\n')
        .filter((line) => line.startsWith('  '))
        .map((line) => line.trim());
    await expect.poll(printed).toHaveLength(3);
    const lines = printed();
    const said = lines.map((line) =>
      execFileSync('sh', ['-c', line], { encoding: 'utf8', cwd: ROOT, env: { ...process.env, PATH } }),
    );
    expect(said[0]).toMatch(/^token \d+\n$/);
    expect(JSON.parse(said[1] ?? '')).toBeDefined();
    expect(said[2]).toMatch(/^\d+n\n$/);
    expect(url).toContain('127.0.0.1');
  });

  it('off loopback it refuses to start without authentication, unless told to', async () => {
    expect(await bench.run('serve', '--port', '0', '--host', '0.0.0.0')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('insecure'),
    });
    const { server } = await serve('--host', '0.0.0.0', '--insecure');
    server.child.kill('SIGTERM');
    expect(await server.ended).toMatchObject({ code: 0 });
  });

  it('knows tokens that pawl token made, with their rights', async () => {
    const made = await bench.run('token', 'ci', '--rights', 'acquire,read', '--prefix', 'deploy:');
    expect(made.code).toBe(0);
    const known = made.stderr.split('\n').find((line) => line.startsWith('{')) ?? '';
    writeFileSync(bench.path('tokens.json'), `[${known}]`);
    writeFileSync(
      bench.path('config.json'),
      JSON.stringify({ port: 0, auth: JSON.parse(`[${known}]`), limits: { watches: 5 } }),
    );
    for (const args of [
      ['--auth', bench.path('tokens.json')],
      ['--config', bench.path('config.json')],
    ]) {
      const { server, url } = await serve(...args);
      const attempt = (lock: string, secret: string) =>
        bench.start(['run', lock, '--server', url, '--', 'true'], { PAWL_SERVER_TOKEN: secret }).ended;
      expect(await attempt('deploy:web', made.stdout.trim())).toMatchObject({ code: 0 });
      expect(await attempt('other', made.stdout.trim())).toMatchObject({
        code: 77,
        stderr: expect.stringContaining('other'),
      });
      expect(await attempt('deploy:web', 'wrong')).toMatchObject({ code: 77 });
      server.child.kill('SIGTERM');
      await server.ended;
    }
  });

  it('S7: signs grants, and a fence that knows the key believes nothing else', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    writeFileSync(bench.path('key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const { server, url } = await serve('--sequencer-key', bench.path('key.pem'));
    const pawl = await connect(url);
    const lease = await pawl.acquire('account:1');
    const fence = new Fence('account:1', { sequencer: { keys: publicKey, required: true } });
    expect(fence.write(lease, () => 'written')).toBe('written');
    expect(fence.highest).toBe(lease.token);
    expect(() => fence.write(lease.token + 1n, () => 'forged')).toThrow();
    // Also where the grant comes as news.
    const waiting = pawl.acquire('account:1', { waitMs: 10_000 });
    for await (const { waiting: count } of pawl.watch('account:1', { everyMs: 20 })) if (count === 1) break;
    await lease.release();
    const next = await waiting;
    expect(fence.write(next, () => 'written')).toBe('written');
    await pawl.close();
    server.child.kill('SIGTERM');
    await server.ended;
    writeFileSync(bench.path('short'), 'short');
    const refused = await bench.run('serve', '--port', '0', '--sequencer-key', bench.path('short'));
    expect(refused).toMatchObject({ code: 64, stderr: expect.stringContaining('sequencer-key') });
  });

  it.each([
    ['--config', '{"prot": 1}', 'prot'],
    ['--config', '[]', 'a JSON object'],
    ['--config', '{"port": "x"}', 'port'],
    ['--config', '{', 'not JSON'],
    ['--auth', '{}', 'list'],
    ['--auth', '[{"name": "x"}]', 'auth'],
  ])('says what is wrong with %s %s', async (option, text, said) => {
    writeFileSync(bench.path('file.json'), text);
    const result = await bench.run('serve', option, bench.path('file.json'));
    expect(result.code).toBeOneOf([64, 69]);
    expect(result.stderr).toContain(said);
  });
});
