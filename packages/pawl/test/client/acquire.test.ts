import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { World } from './world.ts';

const code = (value: string) => expect.objectContaining({ code: value });

describe('acquire', () => {
  it('S1, L2: grants in the order of asking, with rising tokens', async () => {
    const world = new World();
    const { pawl } = world.process();
    const order: number[] = [];
    const tokens: bigint[] = [];
    const all = Array.from({ length: 20 }, async (_, i) => {
      const lease = await pawl.acquire('x');
      order.push(i);
      tokens.push(lease.token);
      await lease.release();
    });
    await world.settle(Promise.all(all));
    expect(order).toEqual(Array.from({ length: 20 }, (_, i) => i));
    expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)));
    expect(new Set(tokens).size).toBe(20);
    expect(world.store.size).toBe(0);
  });

  it('S2: two processes never hold at once, and the first release lets the second in', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const first = await a.pawl.acquire('x');
    const waiting = b.pawl.acquire('x');
    await world.advance(5000);
    expect((await a.pawl.inspect('x')).waiting).toBe(1);
    await first.release();
    const second = await world.settle(waiting);
    expect(second.token).toBeGreaterThan(first.token);
    expect(first.held).toBe(false);
  });

  it('a wait of 0 is exactly one attempt: it gets a free lock every time, and is told at once of a held one', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    for (let i = 0; i < 500; i += 1) await (await a.pawl.acquire('free', { waitMs: 0 })).release();
    const held = await a.pawl.acquire('x');
    await expect(b.pawl.acquire('x', { waitMs: 0 })).rejects.toThrow(code('PAWL_HELD'));
    expect(await b.pawl.tryAcquire('x')).toBeNull();
    await held.release();
    const lease = await b.pawl.tryAcquire('x');
    expect(lease?.held).toBe(true);
    await lease?.release();
    expect(world.store.size).toBe(0);
  });

  it('S6: a wait that runs out leaves nothing behind', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const held = await a.pawl.acquire('x');
    const error = await world.failure(b.pawl.acquire('x', { waitMs: 300 }));
    expect(error).toMatchObject({ code: 'PAWL_ACQUIRE_TIMEOUT', waitedMs: 300, retryable: true });
    expect((await a.pawl.inspect('x')).waiting).toBe(0);
    await held.release();
    expect(world.store.size).toBe(0);
  });

  it('S6: an abort before the start asks for nothing', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    const reason = new Error('no more');
    const error = await world.failure(pawl.acquire('x', { signal: AbortSignal.abort(reason) }));
    expect(error).toMatchObject({ code: 'PAWL_ACQUIRE_ABORTED', cause: reason });
    expect(faults.calls.size).toBe(0);
  });

  it('S6: an abort at any moment leaves either a lease that is held or a free lock', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(40), fc.nat(40), fc.boolean(), async (abortAt, releaseAt, delayed) => {
        const world = new World();
        const [a, b] = [world.process(), world.process()];
        if (delayed)
          b.faults.onCall = (method) => (method === 'commit' ? { delayMs: 7, replyDelayMs: 9 } : undefined);
        const held = await a.pawl.acquire('x');
        const abort = new AbortController();
        b.clock.setTimer(abortAt, () => abort.abort());
        a.clock.setTimer(releaseAt, () => void held.release());
        const outcome = await world.settle(
          b.pawl.acquire('x', { signal: abort.signal }).then(
            (lease) => lease,
            () => null,
          ),
        );
        await world.advance(100);
        const { holders, waiting } = await a.pawl.inspect('x');
        expect(waiting).toBe(0);
        expect(holders.map((holder) => holder.token)).toEqual(outcome === null ? [] : [outcome.token]);
        await world.settle(a.pawl.close());
        await world.settle(b.pawl.close());
      }),
      { numRuns: 150 },
    );
  });

  it('S5: the same request id is the same acquire: while held, and no new one after its release', async () => {
    const world = new World();
    const { pawl } = world.process();
    const lease = await pawl.acquire('x', { requestId: 'job-7' });
    const again = await pawl.acquire('x', { requestId: 'job-7' });
    expect(again.token).toBe(lease.token);
    await again.release();
    expect(lease.held).toBe(false);
    await expect(pawl.acquire('x', { requestId: 'job-7' })).rejects.toThrow(code('PAWL_REQUEST_FINISHED'));
    await expect(pawl.acquire('y', { requestId: 'job-7' })).rejects.toThrow(code('PAWL_REQUEST_FINISHED'));
  });

  it('S5: the same request id for other locks is refused, also while it is under way', async () => {
    const world = new World();
    const { pawl } = world.process();
    await pawl.acquire('x', { requestId: 'job-8' });
    await expect(pawl.acquire('y', { requestId: 'job-8' })).rejects.toThrow(code('PAWL_REQUEST_MISMATCH'));
    const other = world.process();
    const waiting = other.pawl.acquire('x', { requestId: 'w', waitMs: 100 });
    await world.advance(10);
    await expect(other.pawl.acquire('x', { requestId: 'w' })).rejects.toThrow(code('PAWL_INVALID_ARGUMENT'));
    await world.failure(waiting);
  });

  it('L5: an engine that cannot be reached is never reported as held', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    await a.pawl.acquire('x');
    await b.pawl.acquire('warm');
    b.faults.unreachable = true;
    for (const waitMs of [0, 500, undefined]) {
      expect(await world.failure(b.pawl.acquire('x', { waitMs }))).toMatchObject({
        code: 'PAWL_ENGINE_UNAVAILABLE',
        outcome: 'definite',
      });
    }
    await expect(b.pawl.tryAcquire('x')).rejects.toThrow(code('PAWL_ENGINE_UNAVAILABLE'));
  });

  it.each([0, 700])('L5: silence of the engine is not "held" either (wait of %i ms)', async (waitMs) => {
    const world = new World();
    const { pawl, faults } = world.process();
    await pawl.acquire('warm');
    faults.onCall = (method) =>
      ['read', 'commit'].includes(method) ? { kind: 'lost', replyDelayMs: 90_000 } : undefined;
    expect(await world.failure(pawl.acquire('x', { waitMs, ttlMs: 60_000 }), 60_000)).toMatchObject({
      code: 'PAWL_ENGINE_UNAVAILABLE',
      outcome: 'indefinite',
    });
  });

  it('C5: a grant whose reply was lost is found again: one grant, held by the caller', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    await pawl.acquire('warm');
    faults.failNext('commit', { kind: 'lost' });
    const lease = await world.settle(pawl.acquire('x'));
    expect((await pawl.inspect('x')).holders.map((holder) => holder.token)).toEqual([lease.token]);
    await lease.release();
    expect((await pawl.inspect('x')).holders).toEqual([]);
  });

  it('S5, S6: a grant that was heard of before its acquire was answered, and given back, is not asked for again', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    const other = world.process();
    const held = await other.pawl.acquire('x');
    // So that the node does not take the lock for idle.
    expect(await world.settle(pawl.tryAcquire('x', { ttlMs: 60_000 }))).toBeNull();
    // It comes to stand in the queue, but hears of that only much later, and then that nothing is known.
    faults.failNext('commit', { kind: 'lost', replyDelayMs: 5000 });
    const waiting = pawl.acquire('x', { ttlMs: 60_000 });
    await world.advance(50);
    await world.settle(held.release());
    const lease = await world.settle(waiting);
    await world.settle(lease.release());
    await world.advance(1000);
    expect(await world.settle(pawl.inspect('x'))).toMatchObject({ holders: [], waiting: 0 });
  });

  it('C5, S6: an acquire whose outcome stays unknown is cleaned up once the engine answers again', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    await pawl.acquire('warm');
    let happened = false;
    faults.onCall = (method) => {
      if (happened) return { kind: 'refused' };
      happened = method === 'commit';
      return happened ? { kind: 'lost' } : undefined;
    };
    const failing = world.failure(pawl.acquire('x'));
    await world.advance(1000);
    faults.onCall = undefined;
    expect((await pawl.inspect('x')).holders).toHaveLength(1);
    expect(await failing).toMatchObject({ code: 'PAWL_OUTCOME_UNKNOWN', outcome: 'indefinite' });
    await world.advance(2000);
    expect((await pawl.inspect('x')).holders).toEqual([]);
  });

  it('S3: a waiter whose session expires in the queue is told, and the next healthy one is served', async () => {
    const world = new World();
    const [a, b, c] = [world.process(), world.process(), world.process()];
    const held = await a.pawl.acquire('x', { ttlMs: 60_000 });
    const dying = world.failure(b.pawl.acquire('x', { ttlMs: 400 }));
    await world.advance(50);
    const healthy = c.pawl.acquire('x', { ttlMs: 1000 });
    await world.advance(50);
    b.faults.unreachable = true;
    expect(await dying).toMatchObject({ code: 'PAWL_SESSION_ENDED' });
    await held.release();
    expect((await world.settle(healthy)).held).toBe(true);
  });

  it('L1: dead waiters ahead cost one TTL together, not one each', async () => {
    const world = new World();
    const holder = world.process();
    const held = await holder.pawl.acquire('x', { ttlMs: 60_000 });
    for (let i = 0; i < 15; i += 1) {
      const dead = world.process();
      world.failure(dead.pawl.acquire('x', { ttlMs: 1000 })).catch(() => {});
      await world.advance(1);
      dead.faults.unreachable = true;
    }
    const live = world.process();
    const waiting = live.pawl.acquire('x', { ttlMs: 1000 });
    await world.advance(1);
    await held.release();
    const from = world.time.nowMs;
    await world.settle(waiting);
    expect(world.time.nowMs - from).toBeLessThan(1000 + 100);
  });

  it('L3: waiters are woken one at a time, and lost or doubled news only cost a poll', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    let round = 0;
    b.faults.onWake = () => (round++ % 2 === 0 ? 0 : 2);
    for (let i = 0; i < 6; i += 1) {
      const held = await a.pawl.acquire('x', { ttlMs: 60_000 });
      const waiting = b.pawl.acquire('x', { ttlMs: 60_000 });
      await world.advance(10);
      await held.release();
      const from = world.time.nowMs;
      const lease = await world.settle(waiting);
      expect(world.time.nowMs - from).toBeLessThanOrEqual(1100);
      await lease.release();
    }
  });

  it('500 waiters on one lock add no listeners that stay, and no warning', async () => {
    const world = new World();
    const { pawl } = world.process();
    const warnings: string[] = [];
    const onWarning = (warning: Error) => warnings.push(warning.name);
    process.on('warning', onWarning);
    const abort = new AbortController();
    const held = await pawl.acquire('x', { ttlMs: 60_000 });
    const waits = Array.from({ length: 500 }, async () => {
      await expect(pawl.acquire('x', { waitMs: 1000, signal: abort.signal })).rejects.toThrow(
        code('PAWL_ACQUIRE_TIMEOUT'),
      );
    });
    await world.settle(Promise.all(waits));
    expect(getEventListeners(abort.signal, 'abort')).toHaveLength(0);
    await held.release();
    expect(world.store.size).toBe(0);
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });

  it('the queue is bounded', async () => {
    const world = new World();
    const { pawl } = world.process({ maxWaiters: 2 });
    await pawl.acquire('x');
    const waits = [1, 2].map(() => world.failure(pawl.acquire('x', { waitMs: 100 })));
    await world.advance(10);
    await expect(pawl.acquire('x')).rejects.toThrow(code('PAWL_QUEUE_FULL'));
    await Promise.all(waits);
  });

  it('a position can be asked for', async () => {
    const world = new World();
    const { pawl } = world.process();
    const queued: number[] = [];
    pawl.on('queued', ({ ahead }) => queued.push(ahead));
    const held = await pawl.acquire('x');
    const waits = ['a', 'b', 'c'].map((requestId) => pawl.acquire('x', { requestId }));
    for (const wait of waits) wait.catch(() => {});
    await world.advance(10);
    expect(queued).toEqual([0, 1, 2]);
    expect(await pawl.position('x', 'c')).toBe(2);
    await held.release();
    await world.settle(waits[0] ?? Promise.reject());
    expect(await pawl.position('x', 'c')).toBe(1);
    expect(await pawl.position('x', 'a')).toBeNull();
    expect(await pawl.position('x', 'unknown')).toBeNull();
  });

  it('barging lets a newcomer take a free lock before the first in line, and strands nobody', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    let done = 0;
    const work = async (pawl: typeof a.pawl, times: number) => {
      for (let i = 0; i < times; i += 1) {
        const lease = await pawl.acquire('x', { barging: true });
        await lease.release();
        done += 1;
      }
    };
    await world.settle(Promise.all([a, b, a, b].map(({ pawl }) => work(pawl, 25))));
    expect(done).toBe(100);
    expect(world.store.size).toBe(0);
  });
});
