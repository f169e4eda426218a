import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { World } from './world.ts';

const code = (value: string) => expect.objectContaining({ code: value });

describe('shared mode', () => {
  it('S7: shared holders have one token, and an exclusive one after them a higher', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const readers = [
      await a.pawl.acquire('x', { mode: 'shared' }),
      await b.pawl.acquire('x', { mode: 'shared' }),
    ];
    expect(readers[0]?.token).toBe(readers[1]?.token);
    const writing = a.pawl.acquire('x');
    await world.advance(10);
    const late = b.pawl.acquire('x', { mode: 'shared' });
    await world.advance(10);
    for (const reader of readers) await reader.release();
    const writer = await world.settle(writing);
    expect(writer.token).toBeGreaterThan(readers[0]?.token ?? 0n);
    await writer.release();
    expect((await world.settle(late)).token).toBeGreaterThan(writer.token);
  });

  it('L3: a release lets the whole run of shared waiters in, however long', async () => {
    const world = new World();
    const { pawl } = world.process();
    const held = await pawl.acquire('x');
    const readers = Array.from({ length: 100 }, () => pawl.acquire('x', { mode: 'shared' }));
    await world.advance(10);
    await held.release();
    const leases = await world.settle(Promise.all(readers));
    expect(new Set(leases.map((lease) => lease.token)).size).toBe(1);
  });
});

describe('a semaphore', () => {
  it('S1: has as many holders as permits, each on a slot with its own rising tokens', async () => {
    const world = new World();
    const { pawl } = world.process();
    const pool = pawl.semaphore('pool', 3);
    const bySlot = new Map<number, bigint[]>();
    let inside = 0;
    const work = async () => {
      const lease = await pool.acquire();
      inside += 1;
      expect(inside).toBeLessThanOrEqual(3);
      bySlot.set(lease.slot, [...(bySlot.get(lease.slot) ?? []), lease.token]);
      await new Promise<void>((resolve) => queueMicrotask(resolve));
      inside -= 1;
      await lease.release();
    };
    await world.settle(Promise.all(Array.from({ length: 30 }, work)));
    expect([...bySlot.keys()].sort()).toEqual([0, 1, 2]);
    for (const tokens of bySlot.values()) {
      for (const [i, token] of tokens.entries())
        if (i > 0) expect(token).toBeGreaterThan(tokens[i - 1] ?? 0n);
    }
    expect(world.store.size).toBe(0);
  });

  it('S6: waits that were aborted leak no permit', async () => {
    const world = new World();
    const { pawl, clock } = world.process();
    const pool = pawl.semaphore('pool', 3);
    const held = [await pool.acquire(), await pool.acquire(), await pool.acquire()];
    const waits = Array.from({ length: 50 }, (_, i) => {
      const abort = new AbortController();
      clock.setTimer(i, () => abort.abort());
      return pool.acquire({ signal: abort.signal }).then(
        (lease) => lease.release(),
        () => {},
      );
    });
    for (const lease of held) clock.setTimer(20, () => void lease.release());
    await world.settle(Promise.all(waits));
    await world.advance(100);
    const again = [await pool.tryAcquire(), await pool.tryAcquire(), await pool.tryAcquire()];
    expect(again.every((lease) => lease?.held)).toBe(true);
    expect(await pool.tryAcquire()).toBeNull();
  });

  it('refuses another shape while in use, shared mode, and senseless permits', async () => {
    const world = new World();
    const { pawl } = world.process();
    const lease = await pawl.semaphore('pool', 3).acquire();
    await expect(pawl.semaphore('pool', 4).acquire()).rejects.toThrow(code('PAWL_LOCK_SHAPE'));
    await expect(pawl.acquire('pool')).rejects.toThrow(code('PAWL_LOCK_SHAPE'));
    await lease.release();
    await (await pawl.acquire('pool')).release();
    await expect(pawl.semaphore('pool', 3).acquire({ mode: 'shared' })).rejects.toThrow(
      code('PAWL_INVALID_ARGUMENT'),
    );
    for (const permits of [0, -1, 1.5, Number.NaN, 1025, '3']) {
      expect(() => pawl.semaphore('pool', permits as number)).toThrow(code('PAWL_INVALID_ARGUMENT'));
    }
  });
});

describe('acquireAll', () => {
  it('S2: takes all or nothing, and cannot deadlock in whatever order the locks are named', async () => {
    const names = ['a', 'b', 'c', 'd'];
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.shuffledSubarray(names, { minLength: 1 }), { minLength: 2, maxLength: 12 }),
        async (orders) => {
          const world = new World();
          const processes = [world.process(), world.process(), world.process()];
          const holding = new Set<string>();
          const work = async (order: string[], i: number) => {
            const set = await (processes[i % 3] ?? world.process()).pawl.acquireAll(order);
            for (const name of order) {
              expect(holding.has(name)).toBe(false);
              holding.add(name);
            }
            await new Promise<void>((resolve) => queueMicrotask(resolve));
            for (const name of order) holding.delete(name);
            await set.release();
          };
          await world.settle(Promise.all(orders.map(work)), 20_000);
          for (const { pawl } of processes) await world.settle(pawl.close());
          expect(world.store.size).toBe(0);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('names each token, ends as a whole, and is lost as a whole', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const set = await a.pawl.acquireAll(['p', { name: 'q', mode: 'shared' }], { ttlMs: 900 });
    expect([...set.tokens.keys()]).toEqual(['p', 'q']);
    expect(await b.pawl.tryAcquire('p')).toBeNull();
    await b.pawl.breakLock('p', { token: set.tokens.get('p') ?? 0n, reason: 'test' });
    await world.advance(400);
    expect(set.state).toBe('lost');
    expect((await b.pawl.inspect('q')).holders).toEqual([]);
  });

  it.each([[[]], [['a', 'a']], [['a', '']], ['a'], [Array.from({ length: 65 }, (_, i) => `n${i}`)]])(
    'refuses %j',
    async (asks) => {
      const { pawl } = new World().process();
      await expect(pawl.acquireAll(asks as string[])).rejects.toThrow(code('PAWL_INVALID_ARGUMENT'));
    },
  );
});
