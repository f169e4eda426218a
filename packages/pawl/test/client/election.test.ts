import { describe, expect, it } from 'vitest';
import type { Lease } from '../../src/client/lease.ts';
import { World } from './world.ts';

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
