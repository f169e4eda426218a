import { describe, expect, it } from 'vitest';
import { World } from './world.ts';

describe('an acquire with a request id, once more', () => {
  it('C5, S6: waits until its first attempt was taken back, and is unknown where that takes too long', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    await pawl.acquire('warm', { ttlMs: 60_000 });
    const again = { ttlMs: 60_000, requestId: 'r', waitMs: 700 };
    // The first answer is lost, and then the engine is away for all but renewals.
    let answers = 0;
    faults.onCall = (method) => {
      if (method === 'keepAlive') return undefined;
      answers += 1;
      return { kind: answers === 1 ? 'lost' : 'refused' };
    };
    expect(await world.failure(pawl.acquire('x', again))).toMatchObject({ code: 'PAWL_OUTCOME_UNKNOWN' });
    const repeated = await world.failure(pawl.acquire('x', again));
    expect(repeated).toMatchObject({ code: 'PAWL_OUTCOME_UNKNOWN', outcome: 'indefinite' });
    expect(repeated.message).toContain('an earlier acquire');
    faults.onCall = undefined;
    await world.advance(5000);
    expect(await world.failure(pawl.acquire('x', again))).toMatchObject({ code: 'PAWL_REQUEST_FINISHED' });
    expect(await pawl.inspect('x')).toMatchObject({ holders: [], waiting: 0 });
  });
});

describe('a list of locks', () => {
  it('has all of them, each once, beyond one page', async () => {
    const world = new World();
    const { pawl } = world.process();
    const names = Array.from({ length: 520 }, (_, i) => `lock-${String(i).padStart(3, '0')}`);
    for (let from = 0; from < names.length; from += 52) await pawl.acquireAll(names.slice(from, from + 52));
    const listed: string[] = [];
    for await (const { name } of pawl.list('lock-')) listed.push(name);
    expect(listed).toEqual(names);
  });
});
