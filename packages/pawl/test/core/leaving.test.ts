import { describe, expect, it } from 'vitest';
import { decide } from '../../src/core/decide.ts';
import { requestKey } from '../../src/core/names.ts';
import { acquire, cancel, release, tokenOf } from './commands.ts';
import { decided, holders, newsOf, toldTo, worldWith } from './views.ts';

describe('a release', () => {
  it('S4: of what only waits, or of some other lock, takes nothing', () => {
    const world = worldWith('ab');
    world.run(acquire('a', 'r', 'x'));
    world.run(acquire('b', 'r', 'x'));
    const token = tokenOf(world, 'x', 'a', 'r') ?? 0n;
    const waiting = { kind: 'release', session: 'b', request: 'r', names: ['x'], tokens: [token] } as const;
    expect(world.run({ ...waiting, forget: false })).toEqual({ kind: 'notHeld' });
    expect(world.run({ ...release(world, 'a', 'r'), names: ['y'] })).toEqual({ kind: 'notHeld' });
    expect([holders(world), world.lock('x')?.waiting]).toEqual([['a0'], 1]);
  });

  it('S4: after a cancel is no repetition of a release', () => {
    const world = worldWith('a');
    world.run(acquire('a', 'r', 'x'));
    const own = release(world, 'a', 'r');
    world.run(cancel(world, 'a', 'r'));
    expect(world.run(own)).toEqual({ kind: 'notHeld' });
  });

  it('S3: needs its session alive, and where that is known to have ended gives nothing back', () => {
    const world = worldWith('a');
    world.run(acquire('a', 'r', 'x'));
    const own = release(world, 'a', 'r', true);
    expect(decided(world, own)).toMatchObject({ outcomes: [{ kind: 'released' }], write: { alive: ['a'] } });
    expect(decided(world, own, ['a'])).toMatchObject({ outcomes: [{ kind: 'notHeld' }], write: null });
  });
});

describe('a burial', () => {
  const bury = (session: string, names: readonly string[], ghost: string | null = null) =>
    ({ kind: 'bury', session, request: 'r', names, ghost }) as const;

  it('S3: takes the dead out of what they held and waited for, and the next go on', async () => {
    const world = worldWith('abcd');
    for (const session of 'abcd') world.run(acquire(session, 'r', 'x'));
    for (const dead of 'ab') world.store.endSession(dead);
    expect(world.run(bury('b', ['x']))).toEqual({ kind: 'buried' });
    expect(world.queue('x').map(({ session }) => session)).toEqual(['c', 'd']);
    await toldTo(world);
    expect(world.run(bury('a', ['x']))).toEqual({ kind: 'buried' });
    expect(await toldTo(world)).toEqual(['granted c']);
    expect(holders(world)).toEqual(['c0']);
    expect(world.store.list('req/a/', 9)).toEqual([]);
    expect(decided(world, bury('a', ['x']))).toMatchObject({ write: null, outcomes: [{ kind: 'buried' }] });
  });

  it('L1: leaves a ghost where there is a lock-delay, with slot and token, until the ghost ends', () => {
    const world = worldWith('abg');
    world.run(acquire('a', 'r', 'x', { lockDelayMs: 500 }));
    world.run(acquire('b', 'r', 'x'));
    const token = tokenOf(world, 'x', 'a', 'r');
    world.store.endSession('a');
    world.run(bury('a', ['x'], 'g'));
    expect(world.lock('x')?.holders).toEqual([
      expect.objectContaining({ session: 'g', request: 'r', token, ghost: true, lockDelayMs: 0 }),
    ]);
    expect(world.request({ session: 'g', request: 'r' })).toMatchObject({
      state: 'held',
      locks: [{ name: 'x' }],
    });
    expect(world.store.list('req/a/', 9)).toEqual([]);
    world.store.endSession('g');
    world.run(bury('g', ['x']));
    expect(holders(world)).toEqual(['b0']);
  });

  it('L1: leaves none where the session was closed and did not end by itself', () => {
    const world = worldWith('ab');
    world.run(acquire('a', 'r', 'x', { lockDelayMs: 500 }));
    world.run(acquire('b', 'r', 'x'));
    world.run(bury('a', ['x']));
    expect(holders(world)).toEqual(['b0']);
  });

  it('L1: leaves none for a waiter, nor where there was no lock-delay', () => {
    for (const lockDelayMs of [0, 500]) {
      const world = worldWith('abg');
      world.run(acquire('a', 'r', 'x'));
      world.run(acquire('b', 'r', lockDelayMs === 0 ? 'y' : 'x', { lockDelayMs }));
      world.store.endSession('b');
      world.run(bury('b', ['x', 'y'], 'g'));
      expect(world.store.list('req/g/', 9)).toEqual([]);
      expect([holders(world), world.lock('y')]).toEqual([['a0'], undefined]);
    }
  });

  it('L1: a session that has ended and is first in line is named, so that it is buried', () => {
    const world = worldWith('abc');
    for (const session of 'abc') world.run(acquire(session, 'r', 'x'));
    const own = release(world, 'a', 'r');
    const decision = decided(world, own, ['b']);
    expect(decision.inTheWay).toEqual(['b']);
    expect(decision.outcomes).toEqual([{ kind: 'released' }]);
    expect(decision.write?.puts.some(({ key }) => key === requestKey('b', 'r'))).toBe(false);
    expect(decided(world, own).inTheWay).toEqual([]);
  });
});

describe('a cancel', () => {
  it('S6: of an acquire that never came leaves a note only where it may still come', () => {
    const world = worldWith('a');
    expect(world.run(cancel(world, 'a', 'r', true))).toEqual({ kind: 'cancelled', wasGranted: false });
    expect(world.store.size).toBe(0);
    expect(world.run(cancel(world, 'a', 'r'))).toEqual({ kind: 'cancelled', wasGranted: false });
    expect(world.request({ session: 'a', request: 'r' })).toMatchObject({ state: 'done', how: 'cancelled' });
  });

  it('S6: that is forgotten leaves no note of what it ended, and none where nothing was', () => {
    const world = worldWith('ab');
    const command = cancel(world, 'a', 'r', true);
    expect(decide(world.load([command]), [command], { ended: new Set(), maxWaiters: 9 }).write).toBeNull();
    for (const session of ['a', 'b']) world.run(acquire(session, 'r', 'x'));
    for (const session of ['b', 'a']) world.run(cancel(world, session, 'r', true));
    expect(world.store.size).toBe(0);
  });

  it('S5: of what was released already changes nothing: it stays released', () => {
    const world = worldWith('a');
    world.run(acquire('a', 'r', 'x'));
    const own = release(world, 'a', 'r');
    world.run(own);
    world.run(cancel(world, 'a', 'r'));
    expect(world.run(own)).toEqual({ kind: 'alreadyReleased' });
    expect(world.run(acquire('a', 'r', 'x'))).toEqual({ kind: 'finished', how: 'released' });
  });

  it('S6: of a waiter takes its place away and nobody else’s, and is the same when repeated', () => {
    const world = worldWith('abc');
    for (const session of ['a', 'b', 'c']) world.run(acquire(session, 'r', 'x'));
    expect(world.run(cancel(world, 'b', 'r'))).toEqual({ kind: 'cancelled', wasGranted: false });
    expect(world.run(cancel(world, 'b', 'r'))).toEqual({ kind: 'cancelled', wasGranted: false });
    expect(world.queue('x').map(({ session }) => session)).toEqual(['c']);
    expect(world.lock('x')).toMatchObject({ waiting: 1, holders: [{ session: 'a' }] });
  });

  it('S6: of a grant gives it back to the next in line', async () => {
    const world = worldWith('ab');
    for (const session of ['a', 'b']) world.run(acquire(session, 'r', 'x'));
    expect(world.run(cancel(world, 'a', 'r'))).toEqual({ kind: 'cancelled', wasGranted: true });
    expect(world.lock('x')?.holders.map(({ session }) => session)).toEqual(['b']);
    expect((await newsOf(world)).map(({ kind, to }) => [kind, to.session])).toEqual([['granted', 'b']]);
  });

  it('S3: of a session that has ended changes nothing: its burial cleans up', () => {
    const world = worldWith('a');
    world.run(acquire('a', 'r', 'x'));
    const command = cancel(world, 'a', 'r');
    const decision = decide(world.load([command]), [command], { ended: new Set(['a']), maxWaiters: 9 });
    expect(decision).toMatchObject({ outcomes: [{ kind: 'cancelled', wasGranted: false }], write: null });
  });
});
