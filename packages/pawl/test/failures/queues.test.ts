import { describe, expect, it } from 'vitest';
import { type Process, World } from '../client/world.ts';

const SWEEP_MS = 250;

describe('waiters that give up', () => {
  it('S6: whoever timed out and closed is out of the queue before the holder goes, and every promise settles', async () => {
    const world = new World();
    const holder = world.process();
    const held = await holder.pawl.acquire('x', { ttlMs: 60_000 });
    const waits = [1, 2, 3].map(async () => {
      const { pawl } = world.process();
      const error = await pawl.acquire('x', { waitMs: 300 }).catch((reason) => reason);
      await pawl.close();
      return error.code;
    });
    await world.advance(400);
    expect(await world.settle(Promise.all(waits), 0)).toEqual(new Array(3).fill('PAWL_ACQUIRE_TIMEOUT'));
    expect((await holder.pawl.inspect('x')).waiting).toBe(0);
    await held.release();
    expect(world.store.size).toBe(0);
  });

  it('S6: an acquire aborted while its reply is on the way does not stand in the way of the next', async () => {
    for (const kind of [undefined, 'lost'] as const) {
      const world = new World();
      const { pawl, faults } = world.process();
      await pawl.acquire('warm');
      const abort = new AbortController();
      faults.failNext('commit', { replyDelayMs: 300, ...(kind === undefined ? {} : { kind }) });
      const aborted = world.failure(pawl.acquire('x', { signal: abort.signal }));
      await world.advance(50);
      abort.abort();
      const second = await world.settle(pawl.acquire('x', { waitMs: 1000 }));
      expect(await aborted).toMatchObject({ code: 'PAWL_ACQUIRE_ABORTED' });
      await world.advance(1000);
      const { holders, waiting } = await pawl.inspect('x');
      expect([holders.map(({ token }) => token), waiting]).toEqual([[second.token], 0]);
    }
  });

  it('S6, L1: where even the clean-up of an abort is cut off, the end of the session does it', async () => {
    for (const aborts of [1, 2]) {
      const world = new World();
      const [a, b, c] = [world.process(), world.process(), world.process()];
      const held = await a.pawl.acquire('x', { ttlMs: 60_000 });
      for (let i = 0; i < aborts; i += 1) {
        const abort = new AbortController();
        b.pawl.acquire('x', { ttlMs: 1000, signal: abort.signal }).catch(() => {});
        await world.advance(20);
        b.faults.onCall = (method) => (method === 'commit' ? { kind: 'never' } : undefined);
        abort.abort();
        await world.advance(5);
      }
      b.faults.unreachable = true;
      const from = world.time.nowMs;
      await held.release();
      await world.settle(c.pawl.acquire('x'));
      expect(world.time.nowMs - from).toBeLessThanOrEqual(1000 + SWEEP_MS);
    }
  });

  it('L2: impatient callers that ask for long leases leave no ghosts before a patient one', async () => {
    const world = new World();
    const holder = world.process();
    const held = await holder.pawl.acquire('x', { ttlMs: 60_000 });
    let stop = false;
    const impatient = [1, 2, 3].map(async () => {
      const { pawl } = world.process();
      while (!stop) await pawl.acquire('x', { ttlMs: 3000, waitMs: 100 }).catch(() => {});
    });
    await world.advance(500);
    const patient = world.process();
    const waiting = patient.pawl.acquire('x', { waitMs: 2000 });
    await world.advance(500);
    stop = true;
    await world.advance(101);
    await held.release();
    const from = world.time.nowMs;
    const lease = await world.settle(waiting);
    expect(world.time.nowMs - from).toBeLessThanOrEqual(150);
    expect(lease.held).toBe(true);
    await Promise.all(impatient);
    expect((await patient.pawl.inspect('x')).waiting).toBe(0);
  });
});

describe('an acquire whose outcome is unknown', () => {
  /** One commit happens without an answer, and after it none for as long as the engine stays away. */
  const lose = async (world: World, { pawl, faults }: Process) => {
    await pawl.acquire('warm', { ttlMs: 5000 });
    let happened = false;
    faults.onCall = (method) => {
      if (method !== 'commit') return undefined;
      if (happened) return { kind: 'refused' };
      happened = true;
      return { kind: 'lost' };
    };
    return world.failure(pawl.acquire('x', { ttlMs: 5000, requestId: 'job-7' }));
  };

  it('C5, S6: repeated with its id once the engine is back, it is told what became of it, and gets no lease that is taken back', async () => {
    for (const awayMs of [0, 10, 500, 2000]) {
      const world = new World();
      const one = world.process();
      expect(await lose(world, one)).toMatchObject({ code: 'PAWL_OUTCOME_UNKNOWN', outcome: 'indefinite' });
      expect((await one.pawl.inspect('x')).holders).toHaveLength(1);
      const repeated = one.pawl.acquire('x', { ttlMs: 5000, requestId: 'job-7' }).then(
        (lease) => lease,
        (error) => error.code,
      );
      await world.advance(awayMs);
      one.faults.onCall = undefined;
      expect(await world.settle(repeated)).toBe('PAWL_REQUEST_FINISHED');
      expect(await world.settle(one.pawl.inspect('x'))).toMatchObject({ holders: [], waiting: 0 });
      const lease = await world.settle(one.pawl.acquire('x', { ttlMs: 5000, requestId: 'job-8' }));
      await world.advance(20_000);
      expect(lease.held).toBe(true);
    }
  });

  it('C5, L5: repeated while the engine stays away, it is still unknown, within the time to wait; its session’s end frees the lock', async () => {
    const world = new World();
    const [one, other] = [world.process(), world.process()];
    await lose(world, one);
    const again = one.pawl.acquire('x', { ttlMs: 5000, requestId: 'job-7', waitMs: 300 });
    expect(await world.failure(again, 400)).toMatchObject({ code: 'PAWL_OUTCOME_UNKNOWN' });
    const abort = new AbortController();
    const aborted = one.pawl.acquire('x', { ttlMs: 5000, requestId: 'job-7', signal: abort.signal });
    abort.abort();
    expect(await world.failure(aborted, 50)).toMatchObject({ code: 'PAWL_ACQUIRE_ABORTED' });
    one.faults.unreachable = true;
    const from = world.time.nowMs;
    await world.settle(other.pawl.acquire('x'));
    expect(world.time.nowMs - from).toBeLessThanOrEqual(5000 + SWEEP_MS);
  });
});

describe('wake-ups', () => {
  it('L3: a release at any instant around the enqueuing wakes the waiter at once', async () => {
    for (let releaseAt = 0; releaseAt <= 30; releaseAt += 1) {
      for (const [delayMs, replyDelayMs] of [
        [0, 0],
        [7, 9],
        [0, 12],
      ] as const) {
        const world = new World();
        const [a, b] = [world.process(), world.process()];
        b.faults.onCall = (method) =>
          method === 'commit' || method === 'read' ? { delayMs, replyDelayMs } : undefined;
        const held = await a.pawl.acquire('x', { ttlMs: 60_000 });
        const waiting = b.pawl.acquire('x', { ttlMs: 60_000, waitMs: 3000 });
        await world.advance(releaseAt);
        await held.release();
        const from = world.time.nowMs;
        await world.settle(waiting);
        expect(world.time.nowMs - from).toBeLessThanOrEqual(150);
        await world.settle(Promise.all([a.pawl.close(), b.pawl.close()]));
      }
    }
  }, 60_000);

  it('L1: a lock that nobody released and that lapsed is handed on, not before its TTL and within a sweep', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const from = world.time.nowMs;
    await a.pawl.acquire('x', { ttlMs: 500 });
    a.clock.stall();
    await world.settle(b.pawl.acquire('x', { waitMs: 3000 }));
    expect(world.time.nowMs - from).toBeGreaterThanOrEqual(500);
    expect(world.time.nowMs - from).toBeLessThanOrEqual(500 + SWEEP_MS);
  });
});

describe('permits', () => {
  it('S5: acquires whose answers were lost take one permit each, and all come back', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    await pawl.acquire('warm');
    const pool = pawl.semaphore('pool', 5);
    let most = 0;
    let seen = 0;
    const work = Array.from({ length: 10 }, async () => {
      const permit = await pool.acquire({ ttlMs: 60_000 });
      const { holders } = await pawl.inspect('pool');
      most = Math.max(most, holders.length);
      seen += 1;
      await permit.release();
    });
    faults.failNext('commit', { kind: 'lost' });
    faults.failNext('commit', { kind: 'lost' });
    await world.settle(Promise.all(work));
    expect(faults.onCall).toBeUndefined();
    expect(seen).toBe(10);
    expect(most).toBeLessThanOrEqual(5);
    const all = await Promise.all(Array.from({ length: 5 }, () => pool.tryAcquire()));
    expect(all.every((permit) => permit?.held)).toBe(true);
    expect(await pool.tryAcquire()).toBeNull();
  });

  it('S4: a permit that was lost and is given back late frees nobody else’s, and the count stays right', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const old = await a.pawl.semaphore('pool', 2).acquire({ ttlMs: 300 });
    a.clock.stall();
    await world.advance(300 + SWEEP_MS);
    const pool = b.pawl.semaphore('pool', 2);
    const permits = [await pool.acquire(), await pool.acquire()];
    a.clock.resume();
    expect(await world.failure(old.release())).toMatchObject({ code: 'PAWL_LEASE_LOST' });
    await world.advance(100);
    expect((await b.pawl.inspect('pool')).holders).toHaveLength(2);
    expect(await pool.tryAcquire()).toBeNull();
    await permits[0]?.release();
    expect(await pool.tryAcquire()).not.toBeNull();
    expect(await pool.tryAcquire()).toBeNull();
  });
});
