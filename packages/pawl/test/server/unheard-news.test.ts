import { describe, expect, it } from 'vitest';
import type { Pawl } from '../../src/client/pawl.ts';
import { Network } from './network.ts';

/* News that are lost are looked for again: a grant that nobody hears of would be held for as long as its session lives. */

const TTL = 10_000;

/** A client that waits for "x" at a server that dies; the other server is busy until its limit is lifted. */
async function moved() {
  const network = new Network();
  network.server('a');
  const busy = network.server('b');
  const pawl = network.client('a', 'b');
  const other = network.client('b');
  const held = await network.settle(other.acquire('x', { ttlMs: TTL }));
  const waiting = network.settle(pawl.acquire('x', { ttlMs: TTL }), 60_000);
  waiting.catch(() => {});
  await network.time.advance(100);
  expect((await other.inspect('x')).waiting).toBe(1);
  const drop = () => {
    network.down.add('a');
    network.wires.find(({ url }) => url === 'a')?.wire.drop();
  };
  return { network, busy, other, held, waiting, drop };
}

async function tokenOf(other: Pawl) {
  return (await other.inspect('x')).holders.map(({ token }) => token);
}

describe('a waiter whose connection dropped', () => {
  it('S6: at a server that is too busy to listen for it at first hears of its grant all the same', async () => {
    const { network, busy, other, held, waiting, drop } = await moved();
    // As many requests are under way as there may be, but for renewals and releases.
    const load = busy.limits.requests;
    for (let i = 0; i < load; i += 1) busy.load.begin('inspect');
    drop();
    await network.time.advance(500);
    await network.settle(held.release());
    await network.time.advance(500);
    for (let i = 0; i < load; i += 1) busy.load.end();
    const lease = await waiting;
    expect(await tokenOf(other)).toEqual([lease.token]);
  });

  it('C4: and whose grant was broken before it heard of it is told so, and waits no longer', async () => {
    const { network, other, held, waiting, drop } = await moved();
    network.wire.holdReplies = false;
    network.down.add('b');
    drop();
    await network.time.advance(10);
    await network.settle(held.release());
    const [token = 0n] = await tokenOf(other);
    expect(token).toBeGreaterThan(held.token);
    await other.breakLock('x', { token, reason: 'test' });
    network.down.clear();
    await expect(waiting).rejects.toMatchObject({ code: 'PAWL_REQUEST_FINISHED' });
  });
});
