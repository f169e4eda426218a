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

  it.each(['', 'pawl1.', 'pawl1.e30', 'nonsense', 5, null])('refuses %j', async (text) => {
    const { pawl } = new World().process();
    await expect(pawl.resume(text as string)).rejects.toThrow(code('PAWL_INVALID_ARGUMENT'));
  });
});
