import { describe, expect, it } from 'vitest';
import { World } from './world.ts';

const code = (value: string) => expect.objectContaining({ code: value });

describe('a handover', () => {
  it('S1: moves the lease to another process with its token', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const lease = await a.pawl.acquire('x', { ttlMs: 2000 });
    const text = await lease.export();
    expect(lease.state).toBe('exported');
    await expect(lease.release()).rejects.toThrow(code('PAWL_NOT_HELD'));
    await world.settle(a.pawl.close());
    const resumed = await b.pawl.resume(text);
    expect(resumed.token).toBe(lease.token);
    await world.advance(10_000);
    expect(resumed.held).toBe(true);
    await expect(b.pawl.resume(text)).rejects.toThrow(code('PAWL_NOT_HELD'));
    await resumed.release();
    expect(world.store.size).toBe(0);
  });

  it('comes too late after the TTL', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const text = await (await a.pawl.acquire('x', { ttlMs: 500 })).export();
    await world.advance(1000);
    await expect(b.pawl.resume(text)).rejects.toThrow(code('PAWL_NOT_HELD'));
    expect((await b.pawl.tryAcquire('x'))?.held).toBe(true);
  });

  it.each([0.2, 0.4, 0.6, 0.8])(
    'C2, C3: is a whole lease also where resuming takes %d of its TTL',
    async (part) => {
      const world = new World();
      const [a, b] = [world.process(), world.process()];
      const lease = await a.pawl.acquire('x', { ttlMs: 3000 });
      const text = await lease.export();
      for (const method of ['commit', 'openSession'] as const) {
        const [delayMs, replyDelayMs] = [3000 * part * 0.25, 3000 * part * 0.25];
        b.faults.failNext(method, { delayMs, replyDelayMs });
      }
      const resumed = await world.settle(b.pawl.resume(text));
      expect([resumed.token, resumed.state]).toEqual([lease.token, 'held']);
      expect(resumed.remainingMs).toBeGreaterThan(1500);
      await world.advance(10_000);
      expect([resumed.state, resumed.signal.aborted]).toEqual(['held', false]);
      await resumed.release();
      await world.settle(b.pawl.close());
      await world.advance(5000);
      expect(world.store.size).toBe(0);
    },
  );

  it.each([0.4, 0.9])(
    'C2: keeps its session from the first attempt on, however long the transfer takes: %d of its TTL',
    async (part) => {
      const world = new World();
      const [a, b] = [world.process(), world.process()];
      const text = await (await a.pawl.acquire('x', { ttlMs: 3000 })).export();
      b.faults.failNext('commit', { delayMs: 100, replyDelayMs: 3000 * part - 100 });
      const resumed = await world.settle(b.pawl.resume(text));
      await world.advance(10_000);
      expect(resumed.state).toBe('held');
    },
  );

  it('C3: is begun only with more than half of the TTL before it, where no renewal succeeded meanwhile', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const text = await (await a.pawl.acquire('x', { ttlMs: 3000 })).export();
    b.faults.onCall = (method) => {
      if (method === 'commit') return { replyDelayMs: 1600 };
      return method === 'keepAlive' && world.time.nowMs < 1700 ? { kind: 'refused' } : undefined;
    };
    const resumed = await world.settle(b.pawl.resume(text));
    expect(resumed.remainingMs).toBeGreaterThan(1500);
    await world.advance(10_000);
    expect([resumed.state, resumed.signal.aborted]).toEqual(['held', false]);
  });

  it('C5, S6: whose transfer is not answered within the TTL is lost, and given back once it is', async () => {
    for (const fault of [{ delayMs: 4000 }, { replyDelayMs: 4000 }]) {
      const world = new World();
      const [a, b] = [world.process(), world.process()];
      // Its session is in use, and not closed for want of a lease.
      const other = await b.pawl.acquire('y', { ttlMs: 3000 });
      const text = await (await a.pawl.acquire('x', { ttlMs: 3000 })).export();
      b.faults.failNext('commit', fault);
      expect(await world.failure(b.pawl.resume(text), 3100)).toMatchObject({ code: 'PAWL_LEASE_LOST' });
      await world.advance(1500);
      expect((await a.pawl.tryAcquire('x'))?.held).toBe(true);
      expect(other.held).toBe(true);
    }
  });

  it('C5, S6: is given back after its end also where the engine is away at that time', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const other = await b.pawl.acquire('y', { ttlMs: 3000 });
    const text = await (await a.pawl.acquire('x', { ttlMs: 3000 })).export();
    let commits = 0;
    b.faults.onCall = (method) => {
      if (method !== 'commit') return undefined;
      commits += 1;
      // The transfer happens, but its answer comes too late and says nothing; then nothing can be written for a while.
      if (commits === 1) return { kind: 'lost', replyDelayMs: 3500 };
      return world.time.nowMs < 5000 ? { kind: 'refused' } : undefined;
    };
    expect(await world.failure(b.pawl.resume(text))).toMatchObject({ code: 'PAWL_LEASE_LOST' });
    expect(await world.settle(a.pawl.tryAcquire('x'))).toBeNull();
    await world.advance(4000);
    expect((await a.pawl.tryAcquire('x'))?.held).toBe(true);
    expect(other.held).toBe(true);
  });

  it('S6: that ends with its session, while the engine is away, leaves nothing', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const text = await (await a.pawl.acquire('x', { ttlMs: 2000 })).export();
    // The transfer happens, and nothing that comes after it is answered.
    b.faults.onCall = (method) => {
      if (method !== 'commit') return undefined;
      b.faults.onCall = () => ({ kind: 'refused' });
      return { kind: 'lost' };
    };
    expect(await world.failure(b.pawl.resume(text))).toMatchObject({ code: 'PAWL_LEASE_LOST' });
    b.faults.onCall = undefined;
    await world.advance(4000);
    expect((await a.pawl.tryAcquire('x'))?.held).toBe(true);
  });

  it('S6: is given back where its client closes meanwhile', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const text = await (await a.pawl.acquire('x', { ttlMs: 60_000 })).export();
    b.faults.failNext('commit', { replyDelayMs: 1000 });
    const resuming = world.failure(b.pawl.resume(text));
    await world.advance(100);
    await world.settle(b.pawl.close());
    expect(await resuming).toMatchObject({ code: 'PAWL_LEASE_LOST' });
    await world.advance(2000);
    expect((await a.pawl.tryAcquire('x'))?.held).toBe(true);
  });

  it.each(['', 'pawl1.', 'pawl1.e30', 'nonsense', 5, null])('refuses %j', async (text) => {
    const { pawl } = new World().process();
    await expect(pawl.resume(text as string)).rejects.toThrow(code('PAWL_INVALID_ARGUMENT'));
  });
});
