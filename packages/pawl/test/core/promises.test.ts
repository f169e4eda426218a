import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeName, encodeName, nameProblem, waitKey } from '../../src/core/names.ts';
import { decodeLock, decodeRequest, decodeWaiter } from '../../src/core/records.ts';
import { acquire, cancel, release, tokenOf } from './commands.ts';
import { World } from './world.ts';

function worldWith(...sessions: string[]): World {
  const world = new World();
  for (const session of sessions) world.openSession(session, 1_000_000);
  return world;
}

describe('the core', () => {
  it('S4: only the holder’s session can release, and only with its own token', () => {
    const world = worldWith('a', 'b');
    world.run(acquire('a', 'r1', 'x'));
    const own = release(world, 'a', 'r1');
    expect(world.run({ ...own, session: 'b' }).kind).toBe('notHeld');
    expect(world.run({ ...own, request: 'other' }).kind).toBe('notHeld');
    expect(world.run({ ...own, tokens: [own.tokens[0] === 1n ? 2n : 1n] }).kind).toBe('notHeld');
    expect(world.run(own).kind).toBe('released');
    expect(world.run(own).kind).toBe('alreadyReleased');
    world.run(acquire('b', 'r2', 'x'));
    expect(world.run(own).kind).toBe('alreadyReleased');
    expect(tokenOf(world, 'x', 'b', 'r2')).toBeDefined();
  });

  it('S4: a name that the release does not know is found all the same, and others’ locks stay', () => {
    const world = worldWith('a', 'b');
    world.run(acquire('a', 'r1', ['x', 'y']));
    world.run(acquire('b', 'r1', 'z'));
    expect(world.run({ ...cancel(world, 'a', 'r1', true), names: ['z'] })).toEqual({
      kind: 'cancelled',
      wasGranted: true,
    });
    expect(world.lock('x')).toBeUndefined();
    expect(world.lock('y')).toBeUndefined();
    expect(tokenOf(world, 'z', 'b', 'r1')).toBeDefined();
  });

  it('S6: a cancel that overtakes its acquire is remembered', () => {
    const world = worldWith('a');
    world.run(cancel(world, 'a', 'r1'));
    expect(world.run(acquire('a', 'r1', 'x'))).toEqual({ kind: 'finished', how: 'cancelled' });
    expect(world.lock('x')).toBeUndefined();
  });

  it('S3: nothing is granted to a session that ended, nor to one that never was', () => {
    const world = worldWith('a', 'b');
    expect(world.run(acquire('nobody', 'r', 'x')).kind).toBe('sessionEnded');
    world.run(acquire('a', 'r', 'x'));
    world.run(acquire('b', 'r', 'x'));
    world.store.endSession('b');
    world.run(release(world, 'a', 'r'));
    expect(world.lock('x')).toBeUndefined();
  });

  it('L2: an exclusive waiter is not starved by shared newcomers', () => {
    const world = worldWith('a', 'b', 'c');
    const shared = [{ name: 'x', mode: 'shared' }] as const;
    world.run(acquire('a', 'r', shared));
    world.run(acquire('b', 'r', 'x'));
    expect(world.run(acquire('c', 'r', shared)).kind).toBe('queued');
    world.run(release(world, 'a', 'r'));
    expect(tokenOf(world, 'x', 'b', 'r')).toBeDefined();
    expect(tokenOf(world, 'x', 'c', 'r')).toBeUndefined();
  });

  it('L3: a run of shared waiters enters with one release, also beyond what was loaded', () => {
    const world = new World({ headWindow: 2 });
    const readers = Array.from({ length: 9 }, (_, i) => `s${i}`);
    for (const session of ['w', ...readers]) world.openSession(session, 1_000_000);
    world.run(acquire('w', 'r', 'x'));
    for (const session of readers) world.run(acquire(session, 'r', [{ name: 'x', mode: 'shared' }]));
    world.run(release(world, 'w', 'r'));
    expect(world.lock('x')?.holders).toHaveLength(9);
    expect(new Set(world.lock('x')?.holders.map((holder) => holder.token)).size).toBe(1);
    expect(world.queue('x')).toEqual([]);
  });

  it('an idle lock leaves nothing behind', () => {
    const world = worldWith('a');
    world.run(acquire('a', 'r', 'x'));
    world.run(release(world, 'a', 'r', true));
    expect(world.store.size).toBe(0);
  });
});

describe('names and records', () => {
  it('names become keys that differ, come back, and keep their prefixes', () => {
    const name = fc.string({ unit: 'binary', minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(name, name, (a, b) => {
        expect(decodeName(encodeName(a))).toBe(a);
        expect(encodeName(a)).toMatch(/^[A-Za-z0-9_.:%-]+$/);
        expect(encodeName(a) === encodeName(b)).toBe(a === b);
        expect(encodeName(a + b).startsWith(encodeName(a))).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  it('L2: the order of waiters’ keys is that of their tickets', () => {
    const tickets = [0, 1, 9, 10, 99, 100, 2 ** 31, 2 ** 53 - 1];
    const keys = tickets.map((ticket) => waitKey('x', ticket));
    expect([...keys].sort()).toEqual(keys);
  });

  it.each([
    ['', 'is empty'],
    [5, 'is not a string'],
    ['\udc00', 'surrogate'],
    ['x'.repeat(513), 'more than 512'],
  ])('says what is wrong with the name %j', (name, problem) => {
    expect(nameProblem(name)).toContain(problem);
    expect(nameProblem('x'.repeat(512))).toBeUndefined();
  });

  it.each([
    '',
    'x',
    '{}',
    '[]',
    '5',
    '{"holders":5}',
    '{"holders":[{"token":"-1"}],"nextTicket":0}',
    '{"locks":5,"ticket":"a"}',
  ])('a record that Pawl never wrote is reported as corrupt: %j', (text) => {
    for (const decode of [
      () => decodeLock('k', text, 1n),
      () => decodeWaiter('k', text),
      () => decodeRequest('k', text),
    ]) {
      expect(decode).toThrow(expect.objectContaining({ code: 'PAWL_STORE_CORRUPT' }));
    }
  });
});
