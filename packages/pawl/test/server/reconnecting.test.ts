import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Network } from './network.ts';

const code = (value: string) => expect.objectContaining({ code: value });
const TTL = 10_000;

/** A network whose client has a session, and nothing else. */
async function warm(...urls: string[]) {
  const network = new Network();
  for (const url of urls) network.server(url);
  const pawl = network.client(...urls);
  const other = network.client(urls[0] ?? '');
  await (await pawl.acquire('warm', { ttlMs: TTL })).release();
  await network.time.advance(1);
  const wire = network.wires.find((each) => each.url === urls[0])?.wire;
  if (wire === undefined) throw new Error('no wire');
  return { network, pawl, other, wire };
}

describe('a connection that drops', () => {
  it('S5: before the request arrived: it is sent again, and granted once', async () => {
    const { network, pawl, wire } = await warm('a', 'b');
    wire.holdRequests = true;
    const acquiring = pawl.acquire('x', { ttlMs: TTL });
    await network.time.advance(10);
    wire.drop();
    const lease = await network.settle(acquiring);
    expect((await pawl.inspect('x')).holders.map(({ token }) => token)).toEqual([lease.token]);
  });

  it('S5: after the grant, before the reply: the repetition finds the same grant on another server', async () => {
    const { network, pawl, wire } = await warm('a', 'b');
    wire.holdReplies = true;
    const acquiring = pawl.acquire('x', { ttlMs: TTL });
    await network.time.advance(10);
    wire.drop();
    const lease = await network.settle(acquiring);
    const { holders, waiting } = await pawl.inspect('x');
    expect([holders.map(({ token }) => token), waiting]).toEqual([[lease.token], 0]);
    await lease.release();
    expect((await pawl.inspect('x')).holders).toEqual([]);
  });

  it('S5: a request that arrives late, after its grant was released, is no new acquire', async () => {
    const { network, pawl, other, wire } = await warm('a', 'b');
    wire.holdRequests = true;
    const acquiring = pawl.acquire('x', { ttlMs: TTL });
    await network.time.advance(10);
    wire.drop();
    await network.settle(acquiring.then((lease) => lease.release()));
    wire.holdRequests = false;
    wire.deliverLate();
    await network.time.advance(50);
    expect(await other.inspect('x')).toMatchObject({ holders: [], waiting: 0 });
  });

  it('S6: an acquire that timed out and arrives late leaves nothing behind', async () => {
    const { network, pawl, other, wire } = await warm('a');
    network.down.add('a');
    wire.holdRequests = true;
    const acquiring = pawl.acquire('x', { ttlMs: TTL, waitMs: 300 });
    await network.time.advance(10);
    wire.drop();
    await expect(network.settle(acquiring)).rejects.toThrow(code('PAWL_ENGINE_UNAVAILABLE'));
    network.down.clear();
    await network.time.advance(3000);
    wire.holdRequests = false;
    wire.deliverLate();
    await network.time.advance(50);
    expect(await other.inspect('x')).toMatchObject({ holders: [], waiting: 0 });
  });

  it('S5: a release whose reply was lost is a release, not a loss', async () => {
    const { network, pawl, wire } = await warm('a', 'b');
    const lease = await pawl.acquire('x', { ttlMs: TTL });
    wire.holdReplies = true;
    const releasing = lease.release();
    await network.time.advance(10);
    expect((await network.client('b').inspect('x')).holders).toEqual([]);
    wire.drop();
    await network.settle(releasing);
    expect(lease.state).toBe('released');
  });

  it('S4: a lease that was broken before its release is lost, however often the release was sent', async () => {
    const { network, pawl, other, wire } = await warm('a', 'b');
    const lease = await pawl.acquire('x', { ttlMs: TTL });
    wire.holdReplies = true;
    await other.breakLock('x', { token: lease.token, reason: 'test' });
    const releasing = lease.release();
    await network.time.advance(10);
    wire.drop();
    await expect(network.settle(releasing)).rejects.toThrow(code('PAWL_LEASE_LOST'));
  });

  it('a break whose reply was lost has happened', async () => {
    const { network, pawl, other, wire } = await warm('a', 'b');
    const lease = await other.acquire('x');
    wire.holdReplies = true;
    const breaking = pawl.breakLock('x', { token: lease.token, reason: 'stuck' });
    await network.time.advance(10);
    wire.drop();
    await network.settle(breaking);
    expect((await other.inspect('x')).holders).toEqual([]);
  });

  it('costs a waiter neither its place nor a grant that it could not be told of', async () => {
    const { network, pawl, other, wire } = await warm('a', 'b');
    const held = await other.acquire('x');
    const waiting = pawl.acquire('x', { ttlMs: TTL });
    await network.time.advance(10);
    const behind = other.acquire('x');
    await network.time.advance(10);
    network.down.add('b');
    network.down.add('a');
    wire.drop();
    await network.time.advance(10);
    await held.release();
    await network.time.advance(10);
    network.down.clear();
    const lease = await network.settle(waiting);
    expect((await pawl.inspect('x')).waiting).toBe(1);
    await lease.release();
    expect((await network.settle(behind)).token).toBeGreaterThan(lease.token);
  });

  it('ends no lease while the client comes back in time, and every one that it cannot renew', async () => {
    const { network, pawl, wire } = await warm('a', 'b');
    const lease = await pawl.acquire('x', { ttlMs: TTL });
    network.down.add('a').add('b');
    wire.drop();
    await network.time.advance(TTL / 4);
    network.down.delete('b');
    await network.time.advance(5 * TTL);
    expect([lease.held, lease.signal.aborted]).toEqual([true, false]);
    network.down.add('b');
    network.wire.drop();
    for (const each of network.wires) each.wire.drop();
    await network.time.advance(TTL + 1);
    expect(lease.state).toBe('lost');
  });

  it('S2: clients on connections that drop at any moment never hold at once, and all get their turn', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(60), fc.nat(9), fc.boolean()), { minLength: 1, maxLength: 25 }),
        async (drops) => {
          const network = new Network();
          network.server('a');
          network.server('b');
          const clients = ['ab', 'ba', 'ab'].map((urls) => network.client(...urls));
          let inside = 0;
          let done = 0;
          const tokens: bigint[] = [];
          const work = clients.map(async (pawl) => {
            for (let i = 0; i < 8; i += 1) {
              await pawl.withLock('x', { ttlMs: 60_000 }, async (lease) => {
                inside += 1;
                expect(inside).toBe(1);
                tokens.push(lease.token);
                await pawl.inspect('x');
                inside -= 1;
              });
              done += 1;
            }
          });
          const dropping = (async () => {
            for (const [pauseMs, which, late] of drops) {
              await network.time.advance(pauseMs);
              const newest = network.wires.slice(-6);
              const wire = newest[which % newest.length]?.wire;
              if (wire === undefined) continue;
              wire.holdRequests = late;
              wire.holdReplies = !late;
              await network.time.advance(which);
              wire.drop();
              await network.time.advance(150);
              wire.holdRequests = false;
              wire.holdReplies = false;
              wire.deliverLate();
            }
          })();
          await dropping;
          await network.settle(Promise.all(work));
          expect(done).toBe(24);
          expect(tokens).toEqual([...tokens].sort((x, y) => (x < y ? -1 : 1)));
          const state = await clients[0]?.inspect('x');
          expect(state).toMatchObject({ holders: [], waiting: 0 });
          for (const pawl of clients) await network.settle(pawl.close());
          await network.time.advance(100);
          expect(network.store.size).toBe(0);
        },
      ),
      { numRuns: 40 },
    );
  });
});

describe('requests', () => {
  it('L5: that were never sent fail definitely; those without an answer, indefinitely', async () => {
    const network = new Network();
    network.server('a');
    const service = network.service('a');
    const session = await service.openSession(TTL);
    network.wire.holdRequests = true;
    const sent = service.inspect('x').catch((error) => error);
    await network.time.advance(10);
    network.down.add('a');
    network.wire.drop();
    await network.time.advance(10);
    const unsent = service.keepAlive(session, []).catch((error) => error);
    expect(await network.settle(sent)).toMatchObject({
      code: 'PAWL_ENGINE_UNAVAILABLE',
      outcome: 'indefinite',
    });
    expect(await network.settle(unsent)).toMatchObject({
      code: 'PAWL_ENGINE_UNAVAILABLE',
      outcome: 'definite',
    });
    await service.close();
  });

  it('to a server that fell silent are sent to another within their time', async () => {
    const { network, pawl, wire } = await warm('a', 'b');
    wire.holdRequests = true;
    const from = network.time.nowMs;
    const lease = await network.settle(pawl.acquire('x', { ttlMs: TTL }));
    expect(lease.held).toBe(true);
    expect(network.time.nowMs - from).toBeLessThan(4000);
  });

  it('more than a server takes at once wait at the client, and renewals pass them', async () => {
    const network = new Network();
    network.server('a', { requestsInFlight: 80 });
    const pawl = network.client('a');
    await pawl.acquire('warm', { ttlMs: TTL });
    const leases = await Promise.all(
      Array.from({ length: 500 }, (_, i) => pawl.acquire(`x${i}`, { ttlMs: TTL })),
    );
    expect(leases.every((lease) => lease.held)).toBe(true);
    await network.time.advance(3 * TTL);
    expect(leases.every((lease) => lease.held)).toBe(true);
  });

  it('C5: that waited at the client for its earlier ones in vain are told what kept them, and have not happened', async () => {
    const network = new Network();
    network.server('a', { requestsInFlight: 65 });
    const service = network.service('a');
    await service.openSession(TTL);
    const faults = network.faults.get('a');
    if (faults !== undefined) faults.onCall = (method) => (method === 'list' ? { kind: 'never' } : undefined);
    const sent = service.list('', 5).catch((error) => error);
    const waiting = service.inspect('x').catch((error) => error);
    expect(await network.settle(sent)).toMatchObject({ outcome: 'indefinite' });
    const late = await network.settle(waiting);
    expect(late).toMatchObject({ code: 'PAWL_ENGINE_UNAVAILABLE', outcome: 'definite' });
    expect(late.message).toContain('busy for 5000 ms with 1 earlier');
    await service.close();
  });

  it('of all clients together are limited, and renewals last', async () => {
    const network = new Network();
    network.server('a', { requests: 10 });
    const service = network.service('a');
    const session = await service.openSession(TTL);
    const faults = network.faults.get('a');
    if (faults !== undefined) faults.onCall = (method) => (method === 'list' ? { kind: 'never' } : undefined);
    const asked = Array.from({ length: 15 }, () => service.list('', 5).catch((error) => error.code));
    await network.time.advance(10);
    expect(await service.keepAlive(session, [])).toMatchObject({ alive: true });
    const codes = await network.settle(Promise.all(asked));
    expect(codes.filter((each) => each === 'PAWL_LIMIT')).toHaveLength(5);
    expect(codes.filter((each) => each === 'PAWL_ENGINE_UNAVAILABLE')).toHaveLength(10);
    await service.close();
  });

  it('of more holds than one message may have are compared in several', async () => {
    const network = new Network();
    network.server('a');
    const pawl = network.client('a');
    const leases = await Promise.all(
      Array.from({ length: 1100 }, (_, i) => pawl.acquire(`x${i}`, { ttlMs: TTL })),
    );
    network.faults.get('a')?.calls.clear();
    await network.time.advance(TTL);
    expect(leases.every((lease) => lease.held)).toBe(true);
    expect(network.faults.get('a')?.calls.get('keepAlive')).toBeGreaterThanOrEqual(6);
  });

  it('move to the next server when one says goodbye, before it goes', async () => {
    const { network, pawl, wire } = await warm('a', 'b');
    const lease = await pawl.acquire('x', { ttlMs: TTL });
    wire.connection.sendAway();
    await network.time.advance(1);
    expect(network.wires.map(({ url }) => url)).toEqual(['a', 'a', 'b']);
    network.down.add('a');
    await network.settle(lease.release());
  });
});
