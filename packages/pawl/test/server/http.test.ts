import { request } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { MemoryFaults, MemoryStore, memoryEngine } from '../../src/engines/memory/index.ts';
import { acquireMessage, ask, client, greeted, running, until } from './setup.ts';

async function session(url: string, ttlMs = 10_000): Promise<string> {
  return String((await ask(url, 'POST', '/v1/sessions', { ttlMs })).body.session);
}

describe('a lock by HTTP', () => {
  it('S1, S4, S5: its whole life', async () => {
    const { server } = await running();
    const url = server.url;
    const id = { session: await session(url), request: 'one' };
    expect((await ask(url, 'POST', `/v1/sessions/${id.session}/keepalive`)).body).toEqual({ alive: true });
    const granted = await ask(url, 'POST', '/v1/locks/x/acquire', { ...id, owner: { job: '7' } });
    expect(granted).toMatchObject({ status: 200, body: { name: 'x', mode: 'exclusive', slot: 0 } });
    const { token } = granted.body;
    expect(token).toMatch(/^[1-9]\d*$/);
    expect((await ask(url, 'POST', '/v1/locks/x/acquire', id)).body.token).toBe(token);
    expect(await ask(url, 'GET', '/v1/locks/x')).toMatchObject({
      status: 200,
      body: { holders: [{ token, owner: { job: '7' } }], waiting: 0, lastBreak: null },
    });
    const other = { session: await session(url), request: 'two' };
    expect(await ask(url, 'POST', '/v1/locks/x/acquire', other)).toMatchObject({
      status: 409,
      type: 'application/problem+json',
      body: { code: 'PAWL_HELD', status: 409, retryable: true, lock: 'x' },
    });
    const wrong = await ask(url, 'POST', '/v1/locks/x/release', { ...other, token });
    expect(wrong).toMatchObject({ status: 409, body: { code: 'PAWL_NOT_HELD' } });
    for (const _ of [1, 2])
      expect(await ask(url, 'POST', '/v1/locks/x/release', { ...id, token })).toMatchObject({ status: 200 });
    expect(await ask(url, 'POST', '/v1/locks/x/acquire', id)).toMatchObject({
      status: 409,
      body: { code: 'PAWL_REQUEST_FINISHED' },
    });
    const next = await ask(url, 'POST', '/v1/locks/x/acquire', { ...other, request: 'three' });
    expect(BigInt(String(next.body.token))).toBeGreaterThan(BigInt(String(token)));
    expect(await ask(url, 'DELETE', `/v1/sessions/${other.session}`)).toMatchObject({ status: 200 });
    expect((await ask(url, 'GET', '/v1/locks/x')).body.holders).toEqual([]);
    expect(await ask(url, 'POST', `/v1/sessions/${other.session}/keepalive`)).toMatchObject({
      status: 410,
      body: { code: 'PAWL_SESSION_ENDED' },
    });
    const gone = await ask(url, 'POST', '/v1/locks/x/acquire', { ...other, request: 'four' });
    expect(gone).toMatchObject({ status: 410, body: { code: 'PAWL_SESSION_ENDED' } });
  });

  it('L2: waits in the queue with others, also those on WebSocket, and is handed the lock', async () => {
    const { server } = await running();
    const pawl = await client(server.url);
    const held = await pawl.acquire('x');
    const id = { session: await session(server.url), request: 'r' };
    const waiting = ask(server.url, 'POST', '/v1/locks/x/acquire', { ...id, waitMs: 10_000 });
    await until(async () => (await pawl.inspect('x')).waiting === 1);
    await held.release();
    expect((await waiting).status).toBe(200);
  });

  it('S6: a wait that runs out leaves nothing behind', async () => {
    const { server } = await running();
    const pawl = await client(server.url);
    await pawl.acquire('x');
    const id = { session: await session(server.url), request: 'r' };
    expect(await ask(server.url, 'POST', '/v1/locks/x/acquire', { ...id, waitMs: 50 })).toMatchObject({
      status: 409,
      body: { code: 'PAWL_ACQUIRE_TIMEOUT', waitedMs: 50 },
    });
    expect((await pawl.inspect('x')).waiting).toBe(0);
  });

  it('S5: whoever lost the connection in the queue waits on in the same place', async () => {
    const { server } = await running();
    const pawl = await client(server.url);
    const held = await pawl.acquire('x');
    const id = { session: await session(server.url), request: 'r' };
    const body = JSON.stringify({ ...id, waitMs: 10_000 });
    const headers = { 'content-type': 'application/json' };
    const broken = request(`${server.url}/v1/locks/x/acquire`, { method: 'POST', headers }).end(body);
    broken.on('error', () => {});
    await until(async () => (await pawl.inspect('x')).waiting === 1);
    const behind = pawl.acquire('x');
    await until(async () => (await pawl.inspect('x')).waiting === 2);
    broken.destroy();
    await held.release();
    const again = await ask(server.url, 'POST', '/v1/locks/x/acquire', { ...id, waitMs: 10_000 });
    expect(again.status).toBe(200);
    await ask(server.url, 'POST', '/v1/locks/x/release', { ...id, token: again.body.token });
    expect((await behind).token).toBeGreaterThan(BigInt(String(again.body.token)));
  });

  it('is broken by its token, and its holder hears of it', async () => {
    const { server } = await running();
    const pawl = await client(server.url);
    const lease = await pawl.acquire('x');
    const path = '/v1/locks/x/break';
    const wrong = await ask(server.url, 'POST', path, { token: String(lease.token + 1n), reason: 'stuck' });
    expect(wrong).toMatchObject({ status: 409, body: { code: 'PAWL_NOT_HELD' } });
    const right = await ask(server.url, 'POST', path, { token: String(lease.token), reason: 'stuck' });
    expect(right.status).toBe(200);
    await until(() => lease.signal.aborted);
    expect(String(lease.signal.reason)).toContain('stuck');
  });

  it('semaphores and shared mode', async () => {
    const { server } = await running();
    const id = await session(server.url);
    const acquire = (name: string, more: object) =>
      ask(server.url, 'POST', `/v1/locks/${name}/acquire`, { session: id, ...more });
    const slots = [
      await acquire('s', { request: 'a', permits: 2 }),
      await acquire('s', { request: 'b', permits: 2 }),
    ];
    expect(slots.map(({ body }) => body.slot)).toEqual([0, 1]);
    expect((await acquire('s', { request: 'c', permits: 2 })).status).toBe(409);
    expect((await acquire('s', { request: 'd', permits: 3 })).body.code).toBe('PAWL_LOCK_SHAPE');
    const readers = [
      await acquire('r', { request: 'e', mode: 'shared' }),
      await acquire('r', { request: 'f', mode: 'shared' }),
    ];
    expect(readers[0]?.body.token).toBe(readers[1]?.body.token);
  });

  it.each(['a/b/c', '..', '.', '<script>alert(1)</script>', 'é\u0000\n', '%2e%2e', '__proto__', "'; DROP"])(
    'is called %j',
    async (name) => {
      const { server } = await running();
      const id = { session: await session(server.url), request: 'r' };
      // By a plain request: URL parsers take the name `..` for a direction, however it is encoded.
      const path = `/v1/locks/${encodeURIComponent(name)}`;
      const answer = await plain(server.port, 'POST', `${path}/acquire`, JSON.stringify(id));
      expect(answer).toMatch(/^HTTP\/1.1 200/);
      expect(answer).not.toMatch(/text\/html/);
      const { body } = await ask(server.url, 'GET', `/v1/locks?prefix=${encodeURIComponent(name)}`);
      expect(body.locks).toMatchObject([{ name }]);
    },
  );

  it('lists pages', async () => {
    const { server } = await running();
    const pawl = await client(server.url);
    for (const name of ['a1', 'a2', 'a3', 'b']) await pawl.acquire(name);
    const first = await ask(server.url, 'GET', '/v1/locks?prefix=a&limit=2');
    expect(first.body).toMatchObject({ locks: [{ name: 'a1' }, { name: 'a2' }], next: 'a2' });
    const second = await ask(server.url, 'GET', '/v1/locks?prefix=a&limit=2&after=a2');
    expect(second.body).toMatchObject({ locks: [{ name: 'a3' }], next: null });
  });

  it('is watched by server-sent events', async () => {
    const { server } = await running();
    const pawl = await client(server.url);
    const abort = new AbortController();
    const response = await fetch(`${server.url}/v1/locks/x/watch`, { signal: abort.signal });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    let text = '';
    const reading = (async () => {
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString();
    })().catch(() => {});
    await until(() => text.includes('"holders":[]'));
    const lease = await pawl.acquire('x');
    await until(() => text.includes(`"token":"${lease.token}"`));
    abort.abort();
    await reading;
  });
});

describe('what HTTP refuses', () => {
  it.each([
    ['GET', '/v1/nothing', undefined, 404],
    ['PUT', '/v1/locks/x', {}, 405],
    ['PUT', '/v1/locks/x/nothing', {}, 404],
    ['GET', '/v1/locks/%ff', undefined, 400],
    ['GET', `/v1/locks/${'x'.repeat(513)}`, undefined, 400],
    ['GET', '/v1/locks?limit=x', undefined, 400],
    ['GET', '/v1/locks?limit=1&limit=2', undefined, 400],
    ['POST', '/v1/sessions', { ttlMs: -1 }, 400],
    ['POST', '/v1/sessions', [], 400],
    ['POST', '/v1/locks/x/acquire', { session: '../../etc', request: 'r' }, 400],
    ['POST', '/v1/locks/x/acquire', { session: 's', request: 'r', waitMs: 10 ** 9 }, 400],
    ['POST', '/v1/locks/x/acquire', { session: 's', request: 'r', owner: { x: 'y'.repeat(2000) } }, 400],
    ['POST', '/v1/locks/x/acquire', { session: 's', request: 'r', permits: 10 ** 6 }, 400],
    ['POST', '/v1/locks/x/release', { session: 's', request: 'r', token: 5 }, 400],
    ['POST', '/v1/sessions', { ttlMs: 1000, x: 'x'.repeat(70_000) }, 413],
    ['POST', '/livez', {}, 405],
  ])('%s %s', async (method, path, body, status) => {
    const { server, entries } = await running();
    const answer = await ask(server.url, method, path, body);
    expect(answer).toMatchObject({ status, type: 'application/problem+json' });
    expect(answer.body.code).toMatch(/^PAWL_/);
    expect(entries.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it.each([
    ['PUT', '/v1/locks/x', 'GET'],
    ['GET', '/v1/locks/x/acquire', 'POST'],
    ['POST', '/v1/locks/a%2Fb/watch', 'GET'],
    ['GET', '/v1/sessions/s', 'DELETE'],
    ['DELETE', '/livez', 'GET, HEAD'],
    ['PATCH', '/', 'GET, HEAD'],
  ])('%s %s: 405 names the methods that there are', async (method, path, allow) => {
    const { server } = await running();
    const answer = await fetch(`${server.url}${path}`, { method });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, allow]);
  });

  it('bodies that are no JSON or do not say so, and pages of other sites', async () => {
    const { server } = await running();
    const post = (body: string, headers: Record<string, string>) =>
      fetch(`${server.url}/v1/sessions`, { method: 'POST', body, headers });
    expect((await post('{', { 'content-type': 'application/json' })).status).toBe(400);
    expect((await post('{"ttlMs":1000}', { 'content-type': 'text/plain' })).status).toBe(415);
    const evil = await plain(server.port, 'POST', '/v1/sessions', '{}', 'Origin: https://evil.example');
    expect(evil).toMatch(/^HTTP\/1.1 403/);
    const rebound = 'Origin: http://evil.example:7\r\nHost: evil.example:7';
    expect(await plain(server.port, 'POST', '/v1/sessions', '{}', rebound)).toMatch(/^HTTP\/1.1 403/);
    // A browser leaves the origin out where a page only reads from where it came from.
    const reading = (host: string) =>
      plain(server.port, 'GET', '/v1/locks', '', `Sec-Fetch-Site: same-origin\r\nHost: ${host}`);
    expect(await reading('evil.example:7')).toMatch(/^HTTP\/1.1 403/);
    for (const host of ['localhost:7', '127.0.0.1:7', '[::1]:7', '192.0.2.1:7'])
      expect(await reading(host)).toMatch(/^HTTP\/1.1 200/);
    const page = greeted(server.url, { origin: 'https://evil.example' });
    await expect(page).rejects.toThrow('closed');
  });
});

describe('what the server says of itself', () => {
  it('is ready as long as its engine answers, and alive all the time', async () => {
    const faults = new MemoryFaults();
    const engine = memoryEngine({ store: new MemoryStore(), faults });
    const { server } = await running({ engine });
    const status = async (path: string) => (await ask(server.url, 'GET', path)).status;
    expect([await status('/livez'), await status('/readyz'), await status('/healthz')]).toEqual([
      200, 200, 200,
    ]);
    faults.unreachable = true;
    await until(async () => (await status('/readyz')) === 503);
    expect(await status('/livez')).toBe(200);
    faults.unreachable = false;
    await until(async () => (await status('/readyz')) === 200);
  });

  it('measures, in a text that Prometheus reads, and never names a lock', async () => {
    const { server } = await running();
    const [a, b] = [await client(server.url), await client(server.url)];
    const held = await a.acquire('secret-name');
    const waiting = b.acquire('secret-name');
    await until(async () => (await a.inspect('secret-name')).waiting === 1);
    const during = await ask(server.url, 'GET', '/metrics');
    await held.release();
    await (await waiting).release();
    await (await a.acquire('secret-name')).release();
    const { type, body } = await ask(server.url, 'GET', '/metrics');
    expect(type).toContain('text/plain; version=0.0.4');
    const text = String(body.text);
    expect(text).not.toContain('secret');
    const values = parse(text);
    expect(parse(String(during.body.text)).get('pawl_queue_depth')).toBe(1);
    expect(Object.fromEntries(values)).toMatchObject({
      pawl_grants_total: 3,
      pawl_waits_total: 1,
      'pawl_endings_total{reason="released"}': 3,
      pawl_acquire_seconds_count: 3,
      pawl_handover_seconds_count: 1,
      pawl_queue_depth: 0,
      pawl_sessions: 2,
      pawl_connections: 2,
    });
    expect(values.get('pawl_commit_seconds_count')).toBeGreaterThan(0);
    expect(values.get('pawl_batch_size_bucket{le="+Inf"}')).toBe(values.get('pawl_batch_size_count'));
  });

  it('an OpenAPI document with every path that it serves', async () => {
    const { server } = await running();
    const { body } = await ask(server.url, 'GET', '/openapi.json');
    expect(body.openapi).toBe('3.1.0');
    const paths = body.paths as Record<string, Record<string, unknown>>;
    for (const [path, methods] of Object.entries(paths)) {
      for (const method of Object.keys(methods)) {
        if (path.endsWith('/watch')) continue;
        const there = path.replace('{name}', 'x').replace('{session}', 's');
        const answer = await ask(server.url, method.toUpperCase(), there, method === 'post' ? {} : undefined);
        expect([path, answer.status === 404 || answer.status === 405]).toEqual([path, false]);
      }
    }
    expect(Object.keys(paths)).toHaveLength(16);
  });

  it('a request whose fields stand in the prototype has none', async () => {
    const { server } = await running();
    const raw = await greeted(server.url);
    raw.socket.send('[{"id":1,"method":"acquire","params":{"__proto__":{"session":"s","request":"r"}}}]');
    expect(await raw.answer(1)).toMatchObject({ error: { code: 'PAWL_INVALID_ARGUMENT' } });
    raw.send(acquireMessage(2, 'nobody', 'x'));
    expect(await raw.answer(2)).toMatchObject({ result: { kind: 'sessionEnded' } });
  });
});

/** Sends a request as it is, and @returns the answer as it comes. */
function plain(port: number, method: string, path: string, body: string, headers = ''): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.on('data', (data) => (text += data));
  socket.on('close', () => resolve(text));
  socket.on('error', reject);
  const host = headers.includes('Host:') ? '' : `Host: 127.0.0.1:${port}\r\n`;
  const more = headers === '' ? '' : `${headers}\r\n`;
  const type = 'Content-Type: application/json\r\n';
  const length = `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  socket.write(
    `${method} ${path} HTTP/1.1\r\n${host}${more}${type}${length}Connection: close\r\n\r\n${body}`,
  );
  return promise;
}

/** The samples of a Prometheus text; fails on a line that is none. */
function parse(text: string): Map<string, number> {
  const values = new Map<string, number>();
  for (const line of text.trimEnd().split('\n')) {
    if (/^# (HELP|TYPE) pawl_[a-z_]+ \S/.test(line)) continue;
    const match = /^(pawl_[a-z_]+(?:\{[a-z]+="[^"\\]*"\})?) (-?[\d.e+-]+)$/.exec(line);
    if (match === null) throw new Error(`no sample: ${line}`);
    values.set(match[1] ?? '', Number(match[2]));
  }
  return values;
}
