import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Lease } from '../../src/client/lease.ts';
import { World } from './world.ts';

const code = (value: string) => expect.objectContaining({ code: value });

describe('withLock', () => {
  it('returns what the work returns, and has released by then', async () => {
    const world = new World();
    const { pawl } = world.process();
    expect(await pawl.withLock('x', (lease) => lease.name.length)).toBe(1);
    expect(await pawl.withLock('x', { ttlMs: 500 }, async () => 'later')).toBe('later');
    expect(world.store.size).toBe(0);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('mine');
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('mine');
      },
    ],
  ])('passes the error on when the work %s, and releases', async (_how, work) => {
    const world = new World();
    const { pawl } = world.process();
    await expect(pawl.withLock('x', work)).rejects.toThrow('mine');
    await expect(pawl.withLock('x', () => Promise.reject(undefined))).rejects.toBeUndefined();
    expect(world.store.size).toBe(0);
  });

  it('C6: rejects when the lease was lost, with the value or the error as its cause', async () => {
    const world = new World();
    const { pawl, faults, clock } = world.process();
    const pause = (ms: number) => new Promise<void>((resolve) => void clock.setTimer(ms, resolve));
    const valued = pawl.withLock('x', { ttlMs: 300 }, async () => {
      faults.unreachable = true;
      await pause(1000);
      return 'value';
    });
    expect(await world.failure(valued)).toMatchObject({ code: 'PAWL_LEASE_LOST', cause: 'value' });
    faults.unreachable = false;
    const failed = pawl.withLock('y', { ttlMs: 300 }, async () => {
      faults.unreachable = true;
      await pause(1000);
      throw new Error('mine');
    });
    expect(await world.failure(failed)).toMatchObject({
      code: 'PAWL_LEASE_LOST',
      cause: { message: 'mine' },
    });
  });

  it('never hides the work’s own error behind a release that fails, nor loses its value', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    const failing = pawl.withLock('x', { ttlMs: 60_000 }, () => {
      faults.unreachable = true;
      throw new Error('mine');
    });
    expect(await world.failure(failing)).toMatchObject({ message: 'mine' });
    faults.unreachable = false;
    await world.advance(2000);
    const working = pawl.withLock('x', { ttlMs: 60_000 }, () => {
      faults.unreachable = true;
      return 'done';
    });
    expect(await world.settle(working)).toBe('done');
  });

  it('a nested acquire of the same lock throws at once; with reentrant it shares lease and token', async () => {
    const world = new World();
    const { pawl } = world.process();
    await pawl.withLock('x', async (outer) => {
      await expect(pawl.acquire('x')).rejects.toThrow(code('PAWL_REENTRANT_ACQUIRE'));
      await expect(pawl.withLock('x', () => {})).rejects.toThrow(code('PAWL_REENTRANT_ACQUIRE'));
      await expect(pawl.acquireAll(['y', 'x'])).rejects.toThrow(code('PAWL_REENTRANT_ACQUIRE'));
      await pawl.withLock('x', { reentrant: true }, (inner) => expect(inner.token).toBe(outer.token));
      expect(outer.held).toBe(true);
      await (await pawl.acquire('y')).release();
    });
    await (await pawl.acquire('x')).release();
  });

  it('two tasks side by side are never both let in, reentrant or not', async () => {
    const world = new World();
    const { pawl, clock } = world.process();
    let inside = 0;
    const work = async () => {
      inside += 1;
      expect(inside).toBe(1);
      await new Promise<void>((resolve) => void clock.setTimer(5, resolve));
      inside -= 1;
    };
    const tasks = Array.from({ length: 10 }, () => pawl.withLock('x', { reentrant: true }, work));
    await world.settle(Promise.all(tasks));
  });
});

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

describe('an election', () => {
  it('has one leader at a time, and goes on after a loss with a higher token', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const reigns: [string, bigint][] = [];
    const stop = new AbortController();
    const lead = (who: string) => async (lease: Lease) => {
      reigns.push([who, lease.token]);
      await new Promise<void>((resolve) => lease.signal.addEventListener('abort', () => resolve()));
      lease.signal.throwIfAborted();
    };
    const campaigns = [
      world.failure(a.pawl.elect('leader', { ttlMs: 600, signal: stop.signal }, lead('a'))),
      world.failure(b.pawl.elect('leader', { ttlMs: 600, signal: stop.signal }, lead('b'))),
    ];
    await world.advance(100);
    expect(reigns.map(([who]) => who)).toEqual(['a']);
    a.faults.unreachable = true;
    await world.advance(1000);
    a.faults.unreachable = false;
    await world.advance(1000);
    expect(reigns.map(([who]) => who)).toEqual(['a', 'b']);
    b.faults.unreachable = true;
    await world.advance(1000);
    b.faults.unreachable = false;
    await world.advance(1000);
    expect(reigns.map(([who]) => who)).toEqual(['a', 'b', 'a']);
    const tokens = reigns.map(([, token]) => token);
    expect(tokens).toEqual([...tokens].sort((x, y) => (x < y ? -1 : 1)));
    stop.abort();
    await world.settle(a.pawl.close());
    for (const campaign of campaigns) expect((await campaign).code).toMatch(/ABORTED|CLOSED/);
  });

  it('ends with what the leader returns or throws', async () => {
    const world = new World();
    const { pawl } = world.process();
    expect(await pawl.elect('leader', {}, () => 7)).toBe(7);
    await expect(pawl.elect('leader', {}, () => Promise.reject(new Error('mine')))).rejects.toThrow('mine');
    expect(world.store.size).toBe(0);
  });

  it('can be observed', async () => {
    const world = new World();
    const { pawl } = world.process();
    const seen: (bigint | null)[] = [];
    const stop = new AbortController();
    const observing = (async () => {
      for await (const leader of pawl.observe('leader', { signal: stop.signal }))
        seen.push(leader?.token ?? null);
    })();
    await world.advance(300);
    const first = await pawl.acquire('leader');
    await world.advance(300);
    await first.release();
    await world.advance(300);
    stop.abort();
    await world.settle(observing);
    expect(seen).toEqual([null, first.token, null]);
  });
});

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

  it.each(['', 'pawl1.', 'pawl1.e30', 'nonsense', 5, null])('refuses %j', async (text) => {
    const { pawl } = new World().process();
    await expect(pawl.resume(text as string)).rejects.toThrow(code('PAWL_INVALID_ARGUMENT'));
  });
});

describe('events', () => {
  it('a listener that throws disturbs neither renewal nor other listeners', async () => {
    const world = new World();
    const { pawl } = world.process();
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    const seen: string[] = [];
    pawl.on('acquired', () => {
      throw new Error('listener');
    });
    pawl.on('acquired', ({ name }) => seen.push(name));
    const stop = pawl.on('released', ({ name }) => seen.push(`-${name}`));
    const lease = await pawl.acquire('x', { ttlMs: 600 });
    await world.advance(3000);
    expect(lease.held).toBe(true);
    await lease.release();
    stop();
    await (await pawl.acquire('y')).release();
    expect(seen).toEqual(['x', '-x', 'y']);
    await new Promise((resolve) => setTimeout(resolve, 0));
    process.off('warning', onWarning);
    expect(warnings.map((warning) => warning.message)).toEqual(['listener', 'listener']);
  });

  it('C6: a lost lease is no unhandled rejection', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    const unhandled: unknown[] = [];
    const onUnhandled = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', onUnhandled);
    await pawl.acquire('x', { ttlMs: 300 });
    faults.unreachable = true;
    await world.advance(2000);
    await new Promise((resolve) => setTimeout(resolve, 5));
    process.off('unhandledRejection', onUnhandled);
    expect(unhandled).toEqual([]);
  });
});
