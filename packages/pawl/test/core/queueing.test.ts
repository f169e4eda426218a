import { describe, expect, it } from 'vitest';
import { acquire, release, tokenOf } from './commands.ts';
import { decided, holders, SHARED, toldTo, worldWith } from './views.ts';
import { World } from './world.ts';

describe('the queue', () => {
  it('is as long as it may be: the next is refused, and of several locks the full one is named', () => {
    const world = worldWith('abcd', { maxWaiters: 2 });
    for (const session of 'abc') expect(world.run(acquire(session, 'r', 'x')).kind).not.toBe('queueFull');
    expect(world.run(acquire('d', 'r', ['y', 'x']))).toEqual({ kind: 'queueFull', name: 'x', limit: 2 });
    expect(world.lock('y')).toBeUndefined();
    expect(world.queue('x').map(({ session }) => session)).toEqual(['b', 'c']);
  });

  it('says how many are ahead, also when asked once more; of several locks in the longest queue', () => {
    const world = worldWith('abcde', { headWindow: 2 });
    world.run(acquire('a', 'r', ['x', 'y']));
    const ahead = 'bcd'.split('').map((session) => world.run(acquire(session, 'r', 'x')));
    expect(ahead).toEqual([0, 1, 2].map((n) => ({ kind: 'queued', ahead: n })));
    expect(world.run(acquire('e', 'r', ['y', 'x']))).toEqual({ kind: 'queued', ahead: 3 });
    // Of a queue of which only the start is loaded, the rest is taken to be ahead.
    expect(world.run(acquire('e', 'r', ['y', 'x']))).toEqual({ kind: 'queued', ahead: 3 });
    expect(world.run(acquire('b', 'r', 'x'))).toEqual({ kind: 'queued', ahead: 0 });
    expect(world.run(acquire('c', 'r', 'x'))).toEqual({ kind: 'queued', ahead: 1 });
    expect(world.queue('y').map(({ several }) => several)).toEqual([true]);
    expect(world.queue('x').map(({ several }) => several)).toEqual([false, false, false, true]);
  });

  it('L2: whoever waits for several locks is told to claim them, and gets all or none', async () => {
    const world = worldWith('abc');
    world.run(acquire('a', 'r', 'x'));
    world.run(acquire('b', 'r', 'y'));
    world.run(acquire('c', 'r', ['x', 'y']));
    await toldTo(world);
    world.run(release(world, 'a', 'r'));
    expect(await toldTo(world)).toEqual(['claim c']);
    expect(world.run(acquire('c', 'r', ['x', 'y'])).kind).toBe('queued');
    expect(holders(world)).toEqual([]);
    world.run(release(world, 'b', 'r'));
    expect(await toldTo(world)).toEqual(['claim c']);
    expect(world.run(acquire('c', 'r', ['x', 'y']))).toMatchObject({
      kind: 'granted',
      grants: [{ name: 'x' }, { name: 'y' }],
    });
    expect([holders(world), holders(world, 'y')]).toEqual([['c0'], ['c0']]);
    expect([world.lock('x')?.waiting, world.queue('x'), world.queue('y')]).toEqual([0, [], []]);
  });

  it('L3: however many a release lets in, none of its writes rests on more than 32 sessions besides its own', () => {
    const locks = Array.from({ length: 8 }, (_, i) => `lock-${i}`);
    const widths: number[] = [];
    const readers = locks.flatMap((name) =>
      Array.from({ length: 16 }, (_, i) => ({ name, session: `${name}-${i}` })),
    );
    const world = new World({
      spoil: (write) => {
        widths.push(write.alive.length);
        return write;
      },
    });
    for (const session of ['writer', ...readers.map((reader) => reader.session)])
      world.openSession(session, 60_000);
    world.run(acquire('writer', 'r', locks));
    for (const { name, session } of readers) world.run(acquire(session, 'r', [{ name, mode: 'shared' }]));
    world.run(release(world, 'writer', 'r'));
    for (const name of locks) expect(world.lock(name)).toMatchObject({ holders: { length: 16 }, waiting: 0 });
    expect(Math.max(...widths)).toBe(33);
  });

  it('L3: whoever claims lets those in who may enter with it', async () => {
    const world = worldWith('abc');
    world.run(acquire('a', 'r', 'x'));
    world.run(acquire('b', 'r', [SHARED, { name: 'y', mode: 'shared' }]));
    world.run(acquire('c', 'r', [SHARED]));
    world.run(release(world, 'a', 'r'));
    expect(await toldTo(world)).toEqual(['claim b']);
    expect(holders(world)).toEqual([]);
    world.run(acquire('b', 'r', [SHARED, { name: 'y', mode: 'shared' }]));
    expect(await toldTo(world)).toEqual(['granted c']);
    expect(holders(world)).toEqual(['b0', 'c1']);
  });

  it('L2: a newcomer passes the first in line only where both barge', async () => {
    for (const [first, newcomer, entered] of [
      [true, true, true],
      [true, false, false],
      [false, true, false],
    ] as const) {
      const world = worldWith('abc');
      world.run(acquire('a', 'r', 'x'));
      world.run(acquire('b', 'r', first ? 'x' : ['x', 'z'], { barging: first }));
      world.run(release(world, 'a', 'r'));
      expect(await toldTo(world)).toEqual(['claim b']);
      const outcome = world.run(acquire('c', 'r', 'x', { barging: newcomer, wait: false }));
      expect(outcome.kind).toBe(entered ? 'granted' : 'held');
      expect(world.queue('x').map(({ session }) => session)).toEqual(['b']);
    }
  });

  it('L3: one release lets one exclusive waiter in, and tells nobody else', async () => {
    const world = worldWith('abc');
    for (const session of 'abc') world.run(acquire(session, 'r', 'x', { inbox: 'inbox' }));
    world.run(release(world, 'a', 'r'));
    await Promise.resolve();
    expect(world.news).toEqual([
      {
        kind: 'granted',
        to: { session: 'b', request: 'r' },
        grants: [{ name: 'x', mode: 'exclusive', slot: 0, token: tokenOf(world, 'x', 'b', 'r') }],
      },
    ]);
    expect(world.request({ session: 'b', request: 'r' })).toMatchObject({
      state: 'held',
      locks: [{ name: 'x', mode: 'exclusive', permits: null, ticket: null }],
      inbox: 'inbox',
      how: null,
    });
    expect(holders(world)).toEqual(['b0']);
  });

  it('L3: commands that are decided together see each other', async () => {
    const world = worldWith('abc');
    world.run(acquire('a', 'r', 'x'));
    const outcomes = world.runAll([
      acquire('b', 'r', 'x'),
      release(world, 'a', 'r'),
      acquire('c', 'r', 'x', { wait: false }),
      acquire('b', 'r', 'x'),
    ]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(['queued', 'released', 'held', 'granted']);
    expect(await toldTo(world)).toEqual(['granted b']);
  });
});

describe('a promotion', () => {
  it('L3: lets in who may enter, and asks for one more where the loaded start of the queue ran out', () => {
    const world = worldWith('abcd', { headWindow: 1 });
    world.run(acquire('a', 'r', 'x'));
    for (const session of 'bcd') world.run(acquire(session, 'r', [SHARED]));
    expect(decided(world, { kind: 'promote', name: 'x' })).toMatchObject({
      outcomes: [{ kind: 'promoted' }],
      write: null,
      unfinished: [],
    });
    expect(decided(world, release(world, 'a', 'r')).unfinished).toEqual(['x']);
    const wide = worldWith('abcd');
    wide.run(acquire('a', 'r', 'x'));
    for (const session of 'bcd') wide.run(acquire(session, 'r', [SHARED]));
    // All of them are in the one write: nobody waits for another commit.
    expect(decided(wide, release(wide, 'a', 'r')).unfinished).toEqual([]);
    world.run(release(world, 'a', 'r'));
    expect(holders(world)).toEqual(['b0', 'c1', 'd2']);
  });
});
