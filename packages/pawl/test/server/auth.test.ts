import { describe, expect, it } from 'vitest';
import { connect } from '../../src/client/remote/connect.ts';
import { memoryEngine } from '../../src/engines/memory/index.ts';
import { loopback } from '../../src/protocol/loopback.ts';
import { Authenticator } from '../../src/server/authenticator.ts';
import { Connection } from '../../src/server/connection.ts';
import { hashToken, type KnownToken, serve } from '../../src/server/index.ts';
import { checkLimits } from '../../src/server/limits.ts';
import { Log } from '../../src/server/log.ts';
import { serverParts } from '../../src/server/parts.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { ask, client, greeted, RawSocket, running, until } from './setup.ts';

const code = (value: string) => expect.objectContaining({ code: value });
const DAY_MS = 24 * 3_600_000;

const known = (token: string, permissions: KnownToken['permissions'], expiresAtMs?: number): KnownToken => ({
  name: token,
  sha256: hashToken(token),
  permissions,
  expiresAtMs,
});

const auth = [
  known('root', [{ prefix: '', rights: ['admin'] }]),
  known('app', [{ prefix: 'app/', rights: ['acquire'] }]),
  known('looker', [{ prefix: 'app/', rights: ['read'] }]),
  known('breaker', [{ prefix: 'app/', rights: ['break', 'read'] }]),
  known('expired', [{ prefix: '', rights: ['admin'] }], Date.now() - DAY_MS),
];

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

describe('who asks', () => {
  it.each([
    ['no token', {}],
    ['an unknown token', bearer('guess')],
    ['an expired token', bearer('expired')],
    ['another scheme', { authorization: 'Basic cm9vdDpyb290' }],
    ['a hash instead of its token', bearer(hashToken('root'))],
  ] as [string, Record<string, string>][])(
    '%s is answered with 401 on both protocols',
    async (_what, headers) => {
      const { server, entries } = await running({ auth });
      for (const [method, path, body] of [
        ['POST', '/v1/sessions', { ttlMs: 1000 }],
        ['GET', '/v1/locks', undefined],
        ['GET', '/metrics', undefined],
      ] as const) {
        const answer = await ask(server.url, method, path, body, headers);
        expect(answer).toMatchObject({
          status: 401,
          body: { code: 'PAWL_UNAUTHENTICATED', outcome: 'definite' },
        });
      }
      const raw = new RawSocket(server.url, headers);
      if (headers.authorization === undefined) {
        await raw.opened();
        raw.send({ id: 1, method: 'openSession', params: { ttlMs: 1000 } });
        expect(await raw.answer(1)).toMatchObject({ error: { code: 'PAWL_UNAUTHENTICATED' } });
        expect(await raw.closed).toMatchObject({ code: 4401 });
      } else {
        await raw.closed;
        expect(raw.messages).toEqual([]);
        const token = headers.authorization.split(' ')[1] ?? '';
        if (headers.authorization.startsWith('Bearer'))
          await expect(connect(server.url, { token })).rejects.toThrow(code('PAWL_UNAUTHENTICATED'));
      }
      expect(entries.some(({ event }) => event === 'authenticationFailed')).toBe(true);
      expect(JSON.stringify(entries)).not.toContain('guess');
    },
  );

  it('a wrong token in the first message ends the connection; a right one is welcome', async () => {
    const { server } = await running({ auth });
    const wrong = await new RawSocket(server.url).opened();
    wrong.send({ id: 1, method: 'authenticate', params: { token: 'guess' } });
    expect(await wrong.answer(1)).toMatchObject({ error: { code: 'PAWL_UNAUTHENTICATED' } });
    expect(await wrong.closed).toMatchObject({ code: 4401 });
    const right = await new RawSocket(server.url).opened();
    right.send({ id: 1, method: 'authenticate', params: { token: 'app' } });
    await right.find(({ event }) => event === 'hello');
    expect(await right.session()).toMatch(/^[0-9a-f]{32}$/);
  });

  it('livez, readyz and the OpenAPI document need no token', async () => {
    const { server } = await running({ auth });
    for (const path of ['/livez', '/readyz', '/healthz', '/openapi.json'])
      expect((await ask(server.url, 'GET', path)).status).toBe(200);
  });

  it('a token that expires while it is in use is good for nothing from then on', async () => {
    const clock = new SimulatedClock();
    const engine = memoryEngine({ clock });
    const soon = known('soon', [{ prefix: '', rights: ['admin'] }], clock.wallMs() + 1000);
    const { server } = await running({ engine, auth: [soon], clock });
    const raw = await greeted(server.url, bearer('soon'));
    await raw.session();
    await clock.advance(1001);
    raw.send({ id: 1, method: 'inspect', params: { name: 'x' } });
    expect(await raw.answer(1)).toMatchObject({ error: { code: 'PAWL_UNAUTHENTICATED' } });
    expect(await raw.closed).toMatchObject({ code: 4401 });
    expect((await ask(server.url, 'GET', '/v1/locks', undefined, bearer('soon'))).status).toBe(401);
    let closed = false;
    const closing = server.close().then(() => {
      closed = true;
    });
    await until(async () => {
      await clock.advance(50);
      return closed;
    });
    await closing;
    await engine.close();
  });

  it('who does not say so within 5 s is sent away', async () => {
    const clock = new SimulatedClock();
    const engine = memoryEngine({ clock });
    const options = { engine, clock, limits: checkLimits(), log: new Log(clock) };
    const parts = serverParts({ ...options, authenticator: new Authenticator(clock, auth) });
    const [near, far] = loopback();
    new Connection(parts, far, undefined);
    const closings: number[] = [];
    near.start({ onFrame: () => {}, onClose: (closing) => closings.push(closing.code) });
    await clock.advance(4999);
    expect(closings).toEqual([]);
    await clock.advance(2);
    expect(closings).toEqual([4401]);
    await parts.close();
  });
});

describe('what they may do', () => {
  it('a token reaches as far as its rights, on both protocols', async () => {
    const { server } = await running({ auth });
    const root = await client(server.url, { token: 'root' });
    const [app, looker, breaker] = [
      await client(server.url, { token: 'app' }),
      await client(server.url, { token: 'looker' }),
      await client(server.url, { token: 'breaker' }),
    ];
    const lease = await app.acquire('app/x');
    const forbidden: (() => Promise<unknown>)[] = [
      () => app.acquire('other'),
      () => app.acquire('app'),
      () => app.acquireAll(['app/y', 'other']),
      () => app.inspect('app/x'),
      () => app.breakLock('app/x', { token: lease.token, reason: 'mine' }),
      () => looker.acquire('app/y'),
      () => looker.inspect('other'),
      () => looker.breakLock('app/x', { token: lease.token, reason: 'no' }),
      () => looker.list().next(),
      () => looker.list('ap').next(),
      () => breaker.tryAcquire('app/y'),
      () => breaker.breakLock('other', { token: lease.token, reason: 'no' }),
    ];
    for (const attempt of forbidden)
      await expect(attempt()).rejects.toThrow(
        expect.objectContaining({ code: 'PAWL_FORBIDDEN', outcome: 'definite' }),
      );
    expect((await looker.inspect('app/x')).holders).toHaveLength(1);
    expect((await looker.list('app/').next()).value).toMatchObject({ name: 'app/x' });
    expect((await root.list().next()).value).toMatchObject({ name: 'app/x' });
    await breaker.breakLock('app/x', { token: lease.token, reason: 'allowed' });
    await until(() => lease.signal.aborted);
    const status = async (token: string, method: string, path: string, body?: unknown) =>
      (await ask(server.url, method, path, body, bearer(token))).status;
    const { session } = (await ask(server.url, 'POST', '/v1/sessions', { ttlMs: 5000 }, bearer('app'))).body;
    const request = { session, request: 'r' };
    expect(await status('app', 'POST', '/v1/locks/other/acquire', request)).toBe(403);
    expect(await status('app', 'POST', '/v1/locks/app%2Fz/acquire', request)).toBe(200);
    expect(await status('looker', 'GET', '/v1/locks/other')).toBe(403);
    expect(await status('looker', 'GET', '/v1/locks/other/watch')).toBe(403);
    expect(await status('looker', 'GET', '/v1/locks')).toBe(403);
    expect(await status('looker', 'GET', '/v1/locks?prefix=app%2F')).toBe(200);
    expect(await status('looker', 'GET', '/metrics')).toBe(200);
    expect(await status('looker', 'POST', '/v1/locks/app%2Fz/break', { token: '1', reason: 'r' })).toBe(403);
  });

  it('a session of another client is not told of in any answer', async () => {
    const { server } = await running();
    const raw = await greeted(server.url);
    const session = await raw.session();
    const locks = [{ name: 'x' }];
    raw.send({ id: 1, method: 'acquire', params: { session, request: 'r', locks } });
    await raw.answer(1);
    const other = await greeted(server.url);
    const own = await other.session();
    other.send({ id: 1, method: 'acquire', params: { session: own, request: 'r', locks } });
    other.send({ id: 2, method: 'inspect', params: { name: 'x' } });
    expect(await other.answer(1)).toMatchObject({ result: { kind: 'held', holders: [] } });
    await other.answer(2);
    expect(JSON.stringify(other.messages)).not.toContain(session);
  });
});

describe('serve', () => {
  it.each(['0.0.0.0', '::', '192.0.2.1', 'example.org'])(
    'refuses to start on %s without authentication, and says what to do',
    async (host) => {
      const engine = memoryEngine();
      const error = await serve({ engine, host, port: 0 }).catch((e) => e);
      expect(error).toMatchObject({ code: 'PAWL_INVALID_ARGUMENT', parameter: 'auth' });
      expect(error.message).toContain('insecure: true');
      await engine.close();
    },
  );

  it('starts there with authentication, or when told to be insecure', async () => {
    const { server } = await running({ host: '0.0.0.0', auth });
    expect((await ask(`http://127.0.0.1:${server.port}`, 'GET', '/v1/locks')).status).toBe(401);
    const open = await running({ host: '0.0.0.0', insecure: true });
    expect((await ask(`http://127.0.0.1:${open.server.port}`, 'GET', '/v1/locks')).status).toBe(200);
  });

  it.each([
    [{ engine: {} }, 'engine'],
    [{ port: -1 }, 'port'],
    [{ auth: [] }, 'auth'],
    [{ auth: [{ name: 'x', sha256: 'plain-text-token', permissions: [] }] }, 'auth.sha256'],
    [
      { auth: [{ name: 'x', sha256: hashToken('x'), permissions: [{ prefix: 'a', rights: ['all'] }] }] },
      'auth.permissions',
    ],
    [{ limits: { connections: 0 } }, 'limits.connections'],
    [{ limits: { connexions: 5 } }, 'limits'],
  ])('refuses %j', async (options, parameter) => {
    const error = await serve({ engine: memoryEngine(), port: 0, ...options } as never).catch((e) => e);
    expect(error).toMatchObject({ code: 'PAWL_INVALID_ARGUMENT', parameter });
    expect(error.message).not.toContain('plain-text-token');
  });
});
