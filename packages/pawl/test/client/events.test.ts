import { describe, expect, it } from 'vitest';
import { World } from './world.ts';

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
    const stopThrowing = pawl.on('released', () => {
      throw 'no error';
    });
    const stop = pawl.on('released', ({ name }) => seen.push(`-${name}`));
    const lease = await pawl.acquire('x', { ttlMs: 600 });
    await world.advance(3000);
    expect(lease.held).toBe(true);
    await lease.release();
    stopThrowing();
    stop();
    await (await pawl.acquire('y')).release();
    expect(seen).toEqual(['x', '-x', 'y']);
    await new Promise((resolve) => setTimeout(resolve, 0));
    process.off('warning', onWarning);
    expect(warnings.map((warning) => warning.message)).toEqual(['listener', 'no error', 'listener']);
  });

  it('whoever begins to listen while a lease is held hears for how long it was held', async () => {
    const world = new World();
    const { pawl } = world.process();
    const lease = await pawl.acquire('x');
    await world.advance(2000);
    const heard: number[] = [];
    pawl.on('released', ({ heldMs }) => heard.push(heldMs));
    await lease.release();
    expect(heard).toHaveLength(1);
    expect(heard[0]).toBeGreaterThanOrEqual(2000);
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
