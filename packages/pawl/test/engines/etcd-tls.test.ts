import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from '../../src/client/open.ts';
import { type EtcdEngineOptions, etcdEngine } from '../../src/engines/etcd/index.ts';
import { EtcdServer, haveEtcd } from './etcd-server.ts';
import { runDocumented } from './server-tools.ts';
import { seeEachOther } from './two-clients.ts';

/** Certificates of two authorities of the tests' own: etcd trusts one of them, and its own is for localhost and 127.0.0.1. */
const ours = (name: string) => fileURLToPath(new URL(`../server/tls/${name}.pem`, import.meta.url));
const others = (name: string) => fileURLToPath(new URL(`./tls/${name}.pem`, import.meta.url));
const pem = (path: string) => readFileSync(path, 'utf8');

/** More than two attempts to reach the only member may take, with the start of a process; the limit of each is 1.75 s. */
const CHILD_LIMIT_MS = 30_000;

describe.skipIf(!haveEtcd())('etcd over TLS, where clients have to show a certificate', () => {
  const server = new EtcdServer(1, {
    cert: ours('server'),
    key: ours('server-key'),
    clientCa: ours('ca'),
  });
  beforeAll(() => server.start(), 60_000);
  afterAll(() => server.stop());

  const tls = { ca: pem(ours('ca')), cert: pem(ours('client')), key: pem(ours('client-key')) };
  const secure = () => [`https://localhost:${server.securePort(0)}`];
  const engineOn = (prefix: string, more: Partial<EtcdEngineOptions> = {}) =>
    etcdEngine({ endpoints: secure(), tls, prefix, ...more });

  it('S1, S2, L2: two clients see each other’s locks, queues and tokens', async () => {
    await seeEachOther(await engineOn('two'), await engineOn('two'));
  }, 30_000);

  it('L1, S3: a session that nobody keeps alive ends, and its lock goes to who waits', async () => {
    const [lost, other] = [await engineOn('lost'), await engineOn('lost')];
    expect(await lost.openSession('s', 2000)).toBe(true);
    expect(await lost.keepAlive(['s'])).toEqual(new Set(['s']));
    const dying = open(lost);
    const pawl = open(other);
    const lease = await dying.acquire('x', { ttlMs: 2000 });
    // As if its process were gone: nothing is released, nothing renewed.
    await lost.close();
    const next = await pawl.acquire('x', { waitMs: 15_000 });
    expect(next.token).toBeGreaterThan(lease.token);
    await expect.poll(() => other.keepAlive(['s']), { timeout: 10_000 }).toEqual(new Set());
    await dying.close().catch(() => {});
    await pawl.close();
    await other.close();
  }, 40_000);

  it('the documented program runs', () => {
    const files = { ETCD_CA: ours('ca'), ETCD_CERT: ours('client'), ETCD_KEY: ours('client-key') };
    const environment = { ETCD_ENDPOINTS: secure().join(','), ...files };
    expect(runDocumented('etcd', environment, 'engines', 'ETCD_CA')).toMatch(/^token \d+\n$/);
  }, 30_000);

  it('L5: whatever does not fit says what is wrong and what to do, and leaves nothing open', async () => {
    const stranger = { cert: pem(others('stranger')), key: pem(others('stranger-key')) };
    const { ca, cert, key } = tls;
    const port = server.securePort(0);
    const cases: [EtcdEngineOptions, RegExp][] = [
      [{ endpoints: secure(), tls: { cert, key } }, /certificate.*tls\.ca\.$/],
      [{ endpoints: secure(), tls: { ...tls, ca: pem(others('other-ca')) } }, /certificate.*tls\.ca\.$/],
      [{ endpoints: secure(), tls: { ca } }, /alert.*--trusted-ca-file.*tls\.cert/],
      [{ endpoints: secure(), tls: { ca, ...stranger } }, /alert.*--trusted-ca-file.*tls\.cert/],
      [
        { endpoints: [`https://127.0.0.2:${port}`], tls },
        /127\.0\.0\.2 is not in the cert's list.*endpoints/,
      ],
      [{ endpoints: [`http://localhost:${port}`] }, /It may want TLS: .*https:\/\//],
      [
        { endpoints: server.endpoints.map((each) => each.replace('http:', 'https:')), tls },
        /It may have no TLS: .*http:\/\//,
      ],
      [{ endpoints: ['http://127.0.0.1:1'] }, /ECONNREFUSED.*members are up/],
    ];
    const [fits, ...failed] = await attempted([{ endpoints: secure(), tls }, ...cases.map(([each]) => each)]);
    expect(fits).toEqual({ opened: true });
    expect(failed).toEqual(
      cases.map(([, message]) => ({
        code: 'PAWL_ENGINE_UNAVAILABLE',
        outcome: 'definite',
        message: expect.stringMatching(message),
      })),
    );
  }, 40_000);

  it('refuses what is no PEM or does not fit together, and shows no key', async () => {
    const bad: [EtcdEngineOptions['tls'], string][] = [
      [{ ...tls, ca: ours('ca') }, 'tls.ca'],
      [{ ...tls, ca: '' }, 'tls.ca'],
      [{ ...tls, cert: ours('client') }, 'tls.cert'],
      [{ ...tls, key: ours('client-key') }, 'tls.key'],
      [{ ...tls, key: pem(ours('server-key')) }, 'tls.key'],
      [{ ...tls, key: tls.key.slice(0, 100) }, 'tls.key'],
      [{ ca: tls.ca, key: tls.key }, 'tls.cert'],
    ];
    for (const [settings, parameter] of bad) {
      const error = await engineOn('bad', settings === undefined ? {} : { tls: settings }).catch((e) => e);
      expect(error).toMatchObject({ code: 'PAWL_INVALID_ARGUMENT', parameter });
      expect(error.message).not.toContain(tls.key.split('\n')[1]);
    }
  });

  it('works for a user with a password, or named by the certificate; a wrong one, and none, say so', async () => {
    await gateway(server, 'auth/user/add', { name: 'root', password: 'secret' });
    await gateway(server, 'auth/user/grant', { user: 'root', role: 'root' });
    await gateway(server, 'auth/enable', {});
    const { token } = await gateway(server, 'auth/authenticate', { name: 'root', password: 'secret' });
    const user = { user: 'root', password: 'secret' };
    await seeEachOther(await engineOn('users', user), await engineOn('users', user));
    const refusal = {
      code: 'PAWL_ENGINE_UNAVAILABLE',
      outcome: 'definite',
      message: expect.stringContaining('Check user and password'),
    };
    await expect(engineOn('users', { ...user, password: 'wrong' })).rejects.toMatchObject(refusal);
    await expect(engineOn('users')).rejects.toMatchObject(refusal);
    await gateway(server, 'auth/user/add', { name: 'client', password: 'never used' }, token);
    await gateway(server, 'auth/user/grant', { user: 'client', role: 'root' }, token);
    await seeEachOther(await engineOn('users'), await engineOn('users', user));
  }, 30_000);
});

/** What comes of opening each, in a process of its own that ends by itself only where nothing was left open. */
async function attempted(options: readonly EtcdEngineOptions[]): Promise<object[]> {
  const child = fileURLToPath(new URL('./etcd-child.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [child, JSON.stringify(options)], {
    timeout: CHILD_LIMIT_MS,
  });
  return JSON.parse(stdout);
}

/** What an operator would do with etcdctl. */
async function gateway(
  server: EtcdServer,
  path: string,
  body: object,
  token?: string,
): Promise<{ token?: string | undefined }> {
  const response = await fetch(`${server.endpoints[0]}/v3/${path}`, {
    method: 'POST',
    headers: token === undefined ? {} : { authorization: token },
    body: JSON.stringify(body),
  });
  const answer = await response.text();
  expect(response.status, answer).toBe(200);
  return JSON.parse(answer);
}
