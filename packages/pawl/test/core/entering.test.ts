import { describe, expect, it } from 'vitest';
import { decide } from '../../src/core/decide.ts';
import { acquire, release, tokenOf } from './commands.ts';
import { holders, SHARED, worldWith } from './views.ts';

describe('who may enter', () => {
  it('S2: nobody beside an exclusive holder, and no exclusive one beside a shared', () => {
    const world = worldWith('abc');
    const now = { wait: false };
    world.run(acquire('a', 'r', 'x'));
    expect(world.run(acquire('b', 'r', [SHARED], now))).toMatchObject({ kind: 'held', name: 'x' });
    expect(world.run(acquire('b', 'r', 'x', now))).toMatchObject({
      holders: [{ session: 'a' }],
      waiting: 0,
    });
    world.run(release(world, 'a', 'r'));
    world.run(acquire('a', 'r2', [SHARED]));
    expect(world.run(acquire('b', 'r', 'x', now)).kind).toBe('held');
    expect(world.run(acquire('b', 'r', [SHARED], now)).kind).toBe('granted');
    expect(holders(world)).toEqual(['a0', 'b1']);
  });

  it('S7: a run of shared holders has one token, and numbers that no two of them share', () => {
    const world = worldWith('abcd');
    for (const session of 'abc') world.run(acquire(session, 'r', [SHARED]));
    world.run(release(world, 'b', 'r'));
    world.run(acquire('d', 'r', [SHARED]));
    expect(holders(world)).toEqual(['a0', 'c2', 'd3']);
    expect(new Set(world.lock('x')?.holders.map(({ token }) => token)).size).toBe(1);
    const run = tokenOf(world, 'x', 'd', 'r') ?? 0n;
    for (const session of 'acd') world.run(release(world, session, 'r'));
    world.run(acquire('a', 'r2', [SHARED]));
    expect(holders(world)).toEqual(['a0']);
    expect(tokenOf(world, 'x', 'a', 'r2')).toBeGreaterThan(run);
  });

  it('S7: a run that ended leaves nothing to the next, also where somebody waits all the time', () => {
    const world = worldWith('abcd');
    for (const session of 'ab') world.run(acquire(session, 'r', [SHARED]));
    for (const [session, asked] of [
      ['c', 'x'],
      ['d', [SHARED]],
    ] as const)
      world.run(acquire(session, 'r', asked));
    for (const session of 'ab') world.run(release(world, session, 'r'));
    expect(world.lock('x')).toEqual({
      permits: null,
      holders: [
        {
          session: 'c',
          request: 'r',
          mode: 'exclusive',
          slot: 0,
          token: tokenOf(world, 'x', 'c', 'r'),
          owner: {},
          inbox: 'inbox',
          lockDelayMs: 0,
          ghost: false,
        },
      ],
      nextTicket: 2,
      waiting: 1,
      nextShared: 0,
    });
    world.run(release(world, 'c', 'r'));
    expect(holders(world)).toEqual(['d0']);
  });

  it('S1: a semaphore takes as many as it has permits, each on the lowest free slot with a token of its own', () => {
    const world = worldWith('abcd');
    const permit = [{ name: 'x', permits: 3 }];
    for (const session of 'abc') world.run(acquire(session, 'r', permit));
    expect(world.run(acquire('d', 'r', permit, { wait: false })).kind).toBe('held');
    expect(holders(world)).toEqual(['a0', 'b1', 'c2']);
    const second = tokenOf(world, 'x', 'b', 'r') ?? 0n;
    world.run(release(world, 'b', 'r'));
    world.run(acquire('d', 'r', permit));
    expect(holders(world)).toEqual(['a0', 'c2', 'd1']);
    expect(tokenOf(world, 'x', 'd', 'r')).toBeGreaterThan(second);
    expect(world.lock('x')?.permits).toBe(3);
  });

  it('a lock in use keeps its shape, and an idle one takes any', () => {
    const world = worldWith('ab');
    world.run(acquire('a', 'r', [{ name: 'x', permits: 2 }]));
    expect(world.run(acquire('b', 'r', 'x'))).toEqual({ kind: 'shape', name: 'x', present: 2, asked: null });
    expect(world.run(acquire('b', 'r', ['y', { name: 'x', permits: 3 }]))).toMatchObject({
      name: 'x',
      asked: 3,
    });
    expect(world.lock('y')).toBeUndefined();
    world.run(release(world, 'a', 'r'));
    expect(world.run(acquire('b', 'r', 'x')).kind).toBe('granted');
    expect(world.lock('x')?.permits).toBeNull();
  });

  it('holds together at most 1024: their record has to stay small', () => {
    for (const [count, kind] of [
      [1023, 'granted'],
      [1024, 'held'],
    ] as const) {
      const holder = { session: 's', mode: 'shared', token: 5n, owner: {}, inbox: '' } as const;
      const held = Array.from({ length: count }, (_, slot) => ({
        ...holder,
        request: `r${slot}`,
        slot,
        lockDelayMs: 0,
        ghost: false,
      }));
      const record = { permits: null, holders: held, nextTicket: 0, waiting: 0, nextShared: count };
      const loaded = {
        locks: new Map([['x', { version: 5n, record, head: [] }]]),
        requests: new Map(),
      };
      const command = acquire('a', 'r', [SHARED], { wait: false });
      const { outcomes } = decide(loaded, [command], { ended: new Set(), maxWaiters: 9 });
      expect(outcomes[0]?.kind).toBe(kind);
    }
  });
});
