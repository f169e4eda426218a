import { describe, expect, it } from 'vitest';
import { MemoryFaults, memoryEngine } from '../../src/testing/index.ts';
import { Network } from './network.ts';
import { acquireMessage, ask, client, greeted, running, until } from './setup.ts';

/* What has ended, or never was, counts towards no limit: a client that lives for months must not run into it. */

const code = (value: string) => expect.objectContaining({ code: value });

describe('limits count', () => {
  it('no session that was not opened, nor one that has expired', async () => {
    const faults = new MemoryFaults();
    const engine = memoryEngine({ faults });
    const { server } = await running({ engine, limits: { sessionsPerConnection: 2 } });
    const raw = await greeted(server.url);
    let id = 0;
    const open = async (ttlMs: number) => {
      id += 1;
      raw.send({ id, method: 'openSession', params: { ttlMs } });
      return raw.answer(id);
    };
    faults.unreachable = true;
    for (let i = 0; i < 3; i += 1)
      expect(await open(10_000)).toMatchObject({ error: { code: 'PAWL_ENGINE_UNAVAILABLE' } });
    faults.unreachable = false;
    for (let i = 0; i < 2; i += 1) expect(await open(50)).toMatchObject({ result: expect.any(String) });
    await until(async () => (await open(10_000)).result !== undefined);
    await until(async () => (await open(10_000)).result !== undefined);
    // As many as it may have, and alive.
    expect(await open(10_000)).toMatchObject({ error: { limitName: 'sessionsPerConnection' } });
  });

  it('no acquire that surely did not happen', async () => {
    const faults = new MemoryFaults();
    const { server } = await running({ engine: memoryEngine({ faults }), limits: { locksPerSession: 2 } });
    const raw = await greeted(server.url);
    const session = await raw.session(60_000);
    faults.unreachable = true;
    for (let id = 1; id < 5; id += 1) {
      raw.send(acquireMessage(id, session, `lock-${id}`));
      expect(await raw.answer(id)).toMatchObject({ error: { code: 'PAWL_ENGINE_UNAVAILABLE' } });
    }
    faults.unreachable = false;
    for (const id of [5, 6]) {
      raw.send(acquireMessage(id, session, `lock-${id}`));
      expect(await raw.answer(id)).toMatchObject({ result: { kind: 'granted' } });
    }
    raw.send(acquireMessage(7, session, 'lock-7'));
    expect(await raw.answer(7)).toMatchObject({ error: { limitName: 'locksPerSession' } });
  });

  it('no wait by HTTP that was refused', async () => {
    const { server } = await running({ limits: { sessions: 1, longPolls: 2 } });
    const raw = await greeted(server.url);
    const session = await raw.session();
    const acquire = (of: string, request: string) =>
      ask(server.url, 'POST', '/v1/locks/x/acquire', { session: of, request, waitMs: 1000 });
    for (let i = 0; i < 3; i += 1)
      expect((await acquire(`unknown-${i}`, 'r')).body).toMatchObject({ limitName: 'sessions' });
    expect(await acquire(session, 'r')).toMatchObject({ status: 200 });
  });
});

describe('a lease that comes from another server', () => {
  it('does not make its client a stranger, however many of them there are', async () => {
    const network = new Network();
    network.server('a', { unknownSessions: 2 });
    network.server('b', { unknownSessions: 2 });
    const [from, to] = [network.client('a'), network.client('b')];
    for (let i = 0; i < 6; i += 1) {
      const lease = await network.settle(from.acquire(`job-${i}`));
      const text = await network.settle(lease.export());
      expect((await network.settle(to.resume(text))).token).toBe(lease.token);
    }
    expect(network.wires.map(({ url }) => url)).toEqual(['a', 'b']);
  });
});

describe('the queue of a server, as it is measured', () => {
  it('is empty once its waiters have gone on at another', async () => {
    const network = new Network();
    const [a, b] = [network.server('a'), network.server('b')];
    const depth = (parts: typeof a) => /^pawl_queue_depth (\d+)/m.exec(parts.metrics.text())?.[1];
    const [other, pawl] = [network.client('b'), network.client('a', 'b')];
    const held = await network.settle(other.acquire('x'));
    const waiting = network.settle(pawl.acquire('x'));
    await network.time.advance(50);
    expect([depth(a), depth(b)]).toEqual(['1', '0']);
    network.down.add('a');
    network.wires.find(({ url }) => url === 'a')?.wire.drop();
    await network.time.advance(500);
    expect([depth(a), depth(b)]).toEqual(['0', '1']);
    await network.settle(held.release());
    await waiting;
    expect([depth(a), depth(b)]).toEqual(['0', '0']);
  });
});

it('an owner that is as large as one may be is acquired for with a tracer as without', async () => {
  const { server } = await running();
  const spanContext = () => ({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 });
  const nothing = () => {};
  const span = {
    spanContext,
    setAttribute: nothing,
    recordException: nothing,
    setStatus: nothing,
    end: nothing,
  };
  const pawl = await client(server.url, { tracer: { startSpan: () => span } });
  let granted = 0;
  for (let length = 900; length < 1024; length += 4) {
    const owner = { host: 'h', pid: '1', note: 'n'.repeat(length) };
    const lease = await pawl.acquire('x', { owner }).catch((error: unknown) => error);
    if (lease instanceof Error) {
      // The client itself refuses what is too large, and says so.
      expect([lease, JSON.stringify(owner).length > 1024]).toEqual([code('PAWL_INVALID_ARGUMENT'), true]);
      continue;
    }
    granted += 1;
    await (lease as Awaited<ReturnType<typeof pawl.acquire>>).release();
  }
  expect(granted).toBeGreaterThan(10);
});

it('a URL with a password is refused, and the password is not repeated', async () => {
  const { connect } = await import('../../src/client/remote/connect.ts');
  for (const url of ['http://user:secret@127.0.0.1:1', 'http://:secret@127.0.0.1:1']) {
    const error = await connect(url).catch((each: unknown) => each);
    expect(error).toMatchObject({ code: 'PAWL_INVALID_ARGUMENT', parameter: 'urls' });
    expect(String(error)).not.toContain('secret');
  }
});
