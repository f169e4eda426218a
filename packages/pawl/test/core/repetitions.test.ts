import { describe, expect, it } from 'vitest';
import { decide } from '../../src/core/decide.ts';
import { decodeBreak } from '../../src/core/records.ts';
import { acquire, cancel, release, tokenOf } from './commands.ts';
import { newsOf, worldWith } from './views.ts';
import type { World } from './world.ts';

function breakOf(world: World, name: string, session: string, request: string) {
  const token = tokenOf(world, name, session, request) ?? 0n;
  return { kind: 'break', session, request, name, token, reason: 'why', by: 'who', atMs: 7 } as const;
}

describe('an acquire, once more', () => {
  it('S5: for other locks under the same request is no repetition', () => {
    const world = worldWith('a');
    world.run(acquire('a', 'r1', 'x'));
    for (const asked of [
      'y',
      ['x', 'y'],
      [{ name: 'x', mode: 'shared' }],
      [{ name: 'x', permits: 2 }],
    ] as const) {
      expect(world.run(acquire('a', 'r1', asked))).toEqual({ kind: 'mismatch' });
    }
    expect(world.run(acquire('a', 'r1', 'x')).kind).toBe('granted');
    expect(world.lock('y')).toBeUndefined();
  });

  it('S5: for some of its locks, or for others beside one of them, is no repetition either', () => {
    const world = worldWith('ab');
    world.run(acquire('b', 'r', 'y'));
    for (const [request, state] of [
      [['u', 'v'], 'granted'],
      [['x', 'y'], 'queued'],
    ] as const) {
      const [first, second] = request;
      expect(world.run(acquire('a', state, request)).kind).toBe(state);
      for (const asked of [[first], [second], [first, 'z'], ['z', second], [second, first]])
        expect(world.run(acquire('a', state, asked))).toEqual({ kind: 'mismatch' });
    }
  });

  it('S5: of a grant is answered with that grant: the same token, slot and mode', () => {
    const world = worldWith('ab');
    world.run(acquire('b', 'r', [{ name: 's', permits: 3 }]));
    for (const asked of [['x', { name: 'y', mode: 'shared' }], [{ name: 's', permits: 3 }]] as const) {
      const command = acquire('a', `r${asked.length}`, asked);
      const first = world.run(command);
      expect(first.kind).toBe('granted');
      expect(world.run(command)).toEqual(first);
    }
  });

  it('S5: after its locks were broken it is over, and says how', () => {
    const world = worldWith('a');
    world.run(acquire('a', 'r1', 'x'));
    world.run(breakOf(world, 'x', 'a', 'r1'));
    expect(world.run(acquire('a', 'r1', 'x'))).toEqual({ kind: 'finished', how: 'broken' });
    expect(world.lock('x')).toBeUndefined();
  });

  it('S5: after one of its locks was broken it is no grant of the rest, but over; for others it is no repetition', () => {
    const world = worldWith('a');
    world.run(acquire('a', 'r1', ['x', 'y']));
    world.run(breakOf(world, 'x', 'a', 'r1'));
    expect(world.run(acquire('a', 'r1', ['x', 'y']))).toEqual({ kind: 'finished', how: 'broken' });
    for (const asked of [['x'], ['x', 'z']] as const)
      expect(world.run(acquire('a', 'r1', asked))).toEqual({ kind: 'mismatch' });
  });

  it('S5: of a session whose end another node knew and broke its lock, it does not hold', () => {
    const world = worldWith('a');
    world.run(acquire('a', 'r1', ['x', 'y']));
    const command = breakOf(world, 'x', 'a', 'r1');
    const ended = new Set(['a']);
    const { write, outcomes } = decide(world.load([command]), [command], { ended, maxWaiters: 9 });
    expect(outcomes).toEqual([{ kind: 'broken', owner: {} }]);
    // A record of an ended session is left as it is: to write it anew would need the session to be alive.
    expect(write).toMatchObject({ alive: [] });
    if (write !== null) world.store.commit(write, world.nowMs);
    expect(world.run(acquire('a', 'r1', ['x', 'y']))).toEqual({ kind: 'finished', how: 'broken' });
    world.openSession('ghost', 1_000_000);
    world.run({ kind: 'bury', session: 'a', request: 'r1', names: ['x', 'y'], ghost: 'ghost' });
    expect([world.lock('x'), world.lock('y')]).toEqual([undefined, undefined]);
  });

  it('L3: from another node it moves the news for this waiter there, and no other’s', async () => {
    const world = worldWith('abc');
    world.run(acquire('a', 'r', 'x'));
    world.run(acquire('b', 'r', 'x'));
    world.run(acquire('c', 'r', 'x', { inbox: 'elsewhere' }));
    const others = world.queue('x')[0];
    const before = world.load([acquire('c', 'r', 'x')]).locks.get('x')?.version;
    expect(world.run(acquire('c', 'r', 'x'))).toEqual({ kind: 'queued', ahead: 1 });
    // The version of the lock's record guards its queue, so it has to change with it.
    expect(world.load([acquire('c', 'r', 'x')]).locks.get('x')?.version).not.toBe(before);
    expect(world.queue('x').map(({ inbox }) => inbox)).toEqual(['inbox', 'inbox']);
    expect(world.queue('x')[0]).toEqual(others);
    expect(world.request({ session: 'c', request: 'r' })).toMatchObject({
      state: 'waiting',
      inbox: 'inbox',
    });
    world.run(release(world, 'a', 'r'));
    world.run(release(world, 'b', 'r'));
    expect((await newsOf(world)).map(({ kind, to }) => [kind, to.session])).toEqual([
      ['granted', 'b'],
      ['granted', 'c'],
    ]);
  });

  it('S6: is told where it waits when it is cancelled at another node, and only then', async () => {
    const world = worldWith('ab');
    world.run(acquire('a', 'r', 'x'));
    for (const inbox of ['inbox', 'elsewhere']) {
      const waits = acquire('b', inbox, ['x', 'y'], { inbox: 'inbox' });
      expect(world.run(waits).kind).toBe('queued');
      world.run({ ...cancel(world, 'b', inbox, true), inbox });
    }
    expect(await newsOf(world)).toEqual([{ kind: 'cancelled', to: { session: 'b', request: 'elsewhere' } }]);
  });

  it('L2: from another node a waiter for several locks still waits for several', () => {
    const world = worldWith('ab');
    world.run(acquire('a', 'r', 'x'));
    world.run(acquire('b', 'r', ['x', 'y'], { inbox: 'elsewhere', lockDelayMs: 5, owner: { by: 'b' } }));
    const [before] = world.queue('x');
    world.run(acquire('b', 'r', ['x', 'y'], { lockDelayMs: 5, owner: { by: 'b' } }));
    expect(world.queue('x')).toEqual([{ ...before, inbox: 'inbox' }]);
    expect(world.queue('y')).toEqual([expect.objectContaining({ several: true, inbox: 'inbox' })]);
  });

  it('L3: from another node it moves the news for its grants there', async () => {
    const world = worldWith('a');
    world.run(acquire('a', 'r', ['x', 'y'], { inbox: 'elsewhere' }));
    const before = world.lock('x')?.holders[0];
    world.run(acquire('a', 'r', ['x', 'y']));
    expect(world.lock('x')?.holders).toEqual([{ ...before, inbox: 'inbox' }]);
    expect(world.lock('y')?.holders[0]?.inbox).toBe('inbox');
    world.run(breakOf(world, 'x', 'a', 'r'));
    expect(await newsOf(world)).toEqual([
      { kind: 'broken', to: { session: 'a', request: 'r' }, name: 'x', reason: 'why' },
    ]);
  });
});

describe('a forced release', () => {
  it('takes one of several locks, and the rest stays held', () => {
    const world = worldWith('ab');
    world.run(acquire('a', 'r', ['x', 'y']));
    world.run(acquire('b', 'r', 'x'));
    const { token, by, reason, atMs } = breakOf(world, 'x', 'a', 'r');
    const told = { token, by, reason, atMs };
    expect(world.run(breakOf(world, 'x', 'a', 'r'))).toEqual({ kind: 'broken', owner: {} });
    expect(world.lock('x')?.holders.map(({ session }) => session)).toEqual(['b']);
    expect(world.lock('y')?.holders.map(({ session }) => session)).toEqual(['a']);
    const [record] = world.store.list('break/', 9);
    expect(decodeBreak('k', record?.value ?? '')).toEqual({ ...told, slot: 0, owner: {} });
    expect(world.store.list('broken/', 9)).toMatchObject([{ key: 'broken/x', value: record?.value }]);
    expect(world.request({ session: 'a', request: 'r' })).toMatchObject({
      state: 'held',
      locks: [{ name: 'y' }],
    });
  });

  it('S4: under another token, or of a request that does not hold, takes nothing and records nothing', () => {
    const world = worldWith('a');
    world.run(acquire('a', 'r', 'x'));
    const own = breakOf(world, 'x', 'a', 'r');
    expect(world.run({ ...own, token: own.token + 1n })).toEqual({ kind: 'notHeld' });
    expect(world.run({ ...own, request: 'other' })).toEqual({ kind: 'notHeld' });
    expect(world.run({ ...own, session: 'b' })).toEqual({ kind: 'notHeld' });
    expect(world.store.list('br', 10)).toEqual([]);
    expect(tokenOf(world, 'x', 'a', 'r')).toBe(own.token);
  });
});
