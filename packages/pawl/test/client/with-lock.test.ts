import { describe, expect, it } from 'vitest';
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
