import { connect as connectTcp, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { MemoryFaults, MemoryStore, memoryEngine } from '../../src/engines/memory/index.ts';
import { acquireMessage, ask, client, greeted, RawSocket, running, until } from './setup.ts';

/** A bystander who holds one lock and takes another again and again: whatever happens, it goes on. */
async function bystander(url: string) {
  const pawl = await client(url);
  const lease = await pawl.acquire('bystander', { ttlMs: 3000 });
  return async () => {
    expect(lease.held).toBe(true);
    await (await pawl.acquire('again')).release();
  };
}

describe('a hostile client', () => {
  it.each([
    ['garbage', 'xxx'],
    ['half a list', '[{"id":1'],
    ['an object', '{"id":1,"method":"ping"}'],
    ['a list of lists', '[[]]'],
    ['null', 'null'],
    ['deep nesting', '['.repeat(500_000)],
    [
      'more messages than allowed',
      JSON.stringify(Array.from({ length: 10_001 }, (_, id) => ({ id, method: 'ping' }))),
    ],
    ['a request without a number', '[{"method":"ping"}]'],
    ['a number that is none', '[{"id":1.5,"method":"ping"}]'],
  ])('that sends %s is told why and cut off', async (_what, frame) => {
    const { server, entries } = await running();
    const goesOn = await bystander(server.url);
    const raw = await greeted(server.url);
    raw.socket.send(frame);
    expect(await raw.find(({ event }) => event === 'error')).toMatchObject({
      error: { code: 'PAWL_INVALID_ARGUMENT' },
    });
    expect(await raw.closed).toMatchObject({ code: 4400 });
    await goesOn();
    expect(entries.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('that sends binary frames is cut off', async () => {
    const { server } = await running();
    const raw = await greeted(server.url);
    raw.socket.send(Buffer.from([1, 2, 3]));
    expect(await raw.closed).toMatchObject({ code: 1003 });
  });

  it.each([
    ['an unknown method', { method: 'drop' }],
    ['a method of the prototype', { method: 'constructor' }],
    ['no fields', { method: 'acquire' }],
    ['a list for fields', { method: 'acquire', params: [] }],
    ['a session that is a path', { method: 'keepAlive', params: { session: '../../x', holds: [] } }],
    ['a session that is too long', { method: 'keepAlive', params: { session: 'x'.repeat(65), holds: [] } }],
    [
      'too many holds',
      { method: 'keepAlive', params: { session: 's', holds: Array(501).fill({ request: 'r', name: 'x' }) } },
    ],
    [
      'a token that is a number',
      { method: 'release', params: { session: 's', request: 'r', grants: [{ name: 'x', token: 5 }] } },
    ],
    [
      'a token beyond 63 bits',
      {
        method: 'release',
        params: { session: 's', request: 'r', grants: [{ name: 'x', token: '9223372036854775808' }] },
      },
    ],
    ['no locks', { method: 'acquire', params: { session: 's', request: 'r', locks: [] } }],
    [
      'a lock twice',
      { method: 'acquire', params: { session: 's', request: 'r', locks: [{ name: 'x' }, { name: 'x' }] } },
    ],
    ['a name that is too long', { method: 'inspect', params: { name: 'é'.repeat(257) } }],
    ['half a surrogate pair', { method: 'inspect', params: { name: '\ud800' } }],
    [
      'an owner that is too large',
      {
        method: 'acquire',
        params: { session: 's', request: 'r', locks: [{ name: 'x' }], owner: { a: 'x'.repeat(1100) } },
      },
    ],
    [
      'an owner of numbers',
      { method: 'acquire', params: { session: 's', request: 'r', locks: [{ name: 'x' }], owner: { a: 1 } } },
    ],
    ['a negative duration', { method: 'openSession', params: { ttlMs: -1 } }],
    ['an endless duration', { method: 'openSession', params: { ttlMs: 1e15 } }],
  ])('that sends %s gets a typed error, and the connection goes on', async (_what, message) => {
    const { server, entries } = await running();
    const raw = await greeted(server.url);
    raw.send({ id: 1, ...message });
    expect(await raw.answer(1)).toMatchObject({
      error: { code: 'PAWL_INVALID_ARGUMENT', outcome: 'definite' },
    });
    raw.send({ id: 1, method: 'ping' });
    await until(() => raw.messages.filter(({ id }) => id === 1).length === 2);
    expect(entries.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('that announces a frame of 100 MB is cut off before it comes', async () => {
    const { server } = await running();
    const goesOn = await bystander(server.url);
    const socket = await handshaken(server.port);
    const header = Buffer.alloc(14);
    header[0] = 0x81;
    header[1] = 0xff;
    header.writeBigUInt64BE(100n * 1024n * 1024n, 2);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(Buffer.concat([header, Buffer.alloc(1000)]));
    await closed;
    await goesOn();
  });

  it('that sends half a frame, or half a handshake, disturbs nobody', async () => {
    const { server } = await running();
    const goesOn = await bystander(server.url);
    const half = await handshaken(server.port);
    half.write(Buffer.from([0x81, 0xfe, 0x10, 0x00, 1, 2, 3, 4, 5]));
    const slow = connectTcp(server.port, '127.0.0.1');
    onTestFinished(() => void slow.destroy());
    slow.write('GET /v1/session HTTP/1.1\r\nHost: x\r\nUpgrade: webso');
    await goesOn();
    half.destroy();
    await goesOn();
  });

  it('that uses a number again before its answer came is cut off', async () => {
    const { server } = await running();
    const raw = await greeted(server.url);
    const session = await raw.session();
    raw.send(acquireMessage(1, session, 'x'), acquireMessage(1, session, 'y'));
    expect(await raw.closed).toMatchObject({ code: 4400 });
  });

  it('that floods with acquires is refused beyond its limits, and leaves nothing behind', async () => {
    const limits = {
      requestsInFlight: 50,
      locksPerSession: 500,
      waitersPerLock: 50,
      sessionsPerConnection: 3,
    };
    const { server } = await running({ limits });
    const goesOn = await bystander(server.url);
    const raw = await greeted(server.url);
    const session = await raw.session();
    for (let from = 1; from <= 3000; from += 1000)
      raw.send(
        ...Array.from({ length: 1000 }, (_, i) => acquireMessage(from + i, session, `flood${from + i}`)),
      );
    await raw.answer(3000);
    for (let i = 3001; i <= 4000; i += 1) {
      raw.send(acquireMessage(i, session, `more${i}`));
      if (i % 50 === 0) await raw.answer(i);
    }
    const refused = raw.messages.filter(({ error }) => error !== undefined);
    const limitNames = new Set(refused.map(({ error }) => (error as { limitName?: string }).limitName));
    expect(limitNames).toEqual(new Set(['requestsInFlight', 'locksPerSession']));
    for (let i = 5001; i <= 5005; i += 1) raw.send({ id: i, method: 'openSession', params: { ttlMs: 1000 } });
    expect(await raw.answer(5005)).toMatchObject({
      error: { code: 'PAWL_LIMIT', limitName: 'sessionsPerConnection', limit: 3, retryable: true },
    });
    await goesOn();
    const granted = raw.messages.filter(
      ({ result }) => (result as { kind?: string })?.kind === 'granted',
    ).length;
    expect(granted).toBe(500);
    raw.send({ id: 6000, method: 'closeSession', params: { session } });
    await raw.answer(6000);
    expect((await ask(server.url, 'GET', '/v1/locks?prefix=flood')).body.locks).toEqual([]);
  });

  it('that makes sessions up is cut off, before the engine has much to do with them', async () => {
    const { server } = await running({ limits: { unknownSessions: 5 } });
    const goesOn = await bystander(server.url);
    const raw = await greeted(server.url);
    raw.send(...Array.from({ length: 8 }, (_, i) => acquireMessage(i + 1, `madeup${i}`, 'x')));
    expect(await raw.answer(8)).toMatchObject({
      error: { code: 'PAWL_LIMIT', limitName: 'unknownSessions' },
    });
    expect(await raw.answer(1)).toMatchObject({ result: { kind: 'sessionEnded' } });
    raw.send({ id: 20, method: 'keepAlive', params: { session: 'madeup9', holds: [] } });
    expect(await raw.closed).toMatchObject({ code: 4429 });
    await goesOn();
  });

  it('that floods with requests of sessions that it made up is cut off, and costs the engine one question for each of them', async () => {
    const store = new MemoryStore();
    const faults = new MemoryFaults();
    let asked = 0;
    faults.onCall = (method) => {
      if (method === 'commit' || method === 'read') asked += 1;
      return undefined;
    };
    const { server } = await running({ engine: memoryEngine({ store, faults }) });
    const raw = await greeted(server.url);
    for (let i = 0; i < 1000; i += 1) raw.send(acquireMessage(i + 1, `madeup${i % 20}`, 'x', true));
    expect(await raw.closed).toMatchObject({ code: 4429 });
    const kinds = raw.messages.flatMap(({ result }) => (result as { kind?: string } | undefined)?.kind ?? []);
    expect(new Set(kinds)).toEqual(new Set(['sessionEnded']));
    expect(asked).toBeLessThan(3 * 20);
  });

  it('cannot fill a queue, nor the sessions, for ever', async () => {
    const { server } = await running({ limits: { waitersPerLock: 5, sessions: 4 } });
    const raw = await greeted(server.url);
    const session = await raw.session();
    raw.send(...Array.from({ length: 10 }, (_, i) => acquireMessage(i + 1, session, 'x', true)));
    expect(await raw.answer(10)).toMatchObject({ result: { kind: 'queueFull', limit: 5 } });
    const statuses = [];
    for (let i = 0; i < 6; i += 1)
      statuses.push((await ask(server.url, 'POST', '/v1/sessions', { ttlMs: 5000 })).status);
    expect(statuses).toEqual([200, 200, 200, 429, 429, 429]);
  });

  it('that asks and does not read is cut off', async () => {
    const { server, entries } = await running({ limits: { bufferedBytes: 256 * 1024 } });
    const goesOn = await bystander(server.url);
    const raw = await greeted(server.url);
    const session = await raw.session();
    const owner = { note: 'x'.repeat(900) };
    for (let i = 0; i < 50; i += 1)
      raw.send({
        id: i,
        method: 'acquire',
        params: { session, request: `r${i}`, locks: [{ name: `big${i}` }], owner },
      });
    await raw.answer(49);
    raw.socket.pause();
    for (let i = 100; i < 3000 && raw.socket.readyState === WebSocket.OPEN; i += 1) {
      raw.send({ id: i, method: 'list', params: { prefix: 'big' } });
      if (i % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      if (entries.some(({ event }) => event === 'slowReaderCut')) break;
    }
    await until(() => entries.some(({ event }) => event === 'slowReaderCut'));
    await goesOn();
  });

  it('that opens more connections than allowed does not get them', async () => {
    const { server } = await running({ limits: { connections: 20 } });
    const goesOn = await bystander(server.url);
    const raws = Array.from({ length: 60 }, () => new RawSocket(server.url));
    await Promise.all(
      raws.map((raw) =>
        Promise.race([raw.closed, new Promise((resolve) => raw.socket.once('open', resolve))]),
      ),
    );
    const open = raws.filter(({ socket }) => socket.readyState === WebSocket.OPEN);
    expect(open.length).toBeLessThanOrEqual(19);
    expect(open.length).toBeGreaterThan(0);
    await goesOn();
    for (const { socket } of raws) socket.terminate();
    await until(async () => (await ask(server.url, 'GET', '/livez').catch(() => undefined))?.status === 200);
  });

  it('that watches, or waits by HTTP, beyond the limit is refused', async () => {
    const { server } = await running({ limits: { watches: 1, longPolls: 1 } });
    const pawl = await client(server.url);
    await pawl.acquire('x');
    const abort = new AbortController();
    await fetch(`${server.url}/v1/locks/x/watch`, { signal: abort.signal });
    expect(await ask(server.url, 'GET', '/v1/locks/x/watch')).toMatchObject({
      status: 429,
      body: { code: 'PAWL_LIMIT', limitName: 'watches' },
    });
    const { session } = (await ask(server.url, 'POST', '/v1/sessions', { ttlMs: 5000 })).body;
    const body = (request: string) => ({ session, request, waitMs: 500 });
    const waiting = ask(server.url, 'POST', '/v1/locks/x/acquire', body('a'));
    await until(async () => (await pawl.inspect('x')).waiting === 1);
    expect((await ask(server.url, 'POST', '/v1/locks/x/acquire', body('b'))).body).toMatchObject({
      limitName: 'longPolls',
    });
    await waiting;
    abort.abort();
  });
});

/** A raw connection that has become a WebSocket. */
async function handshaken(port: number): Promise<Socket> {
  const socket = connectTcp(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  const greeting = new Promise((resolve) => socket.once('data', resolve));
  socket.write(
    `GET /v1/session HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: pawl.v1\r\n\r\n',
  );
  await greeting;
  return socket;
}
