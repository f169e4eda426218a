import { describe, expect, it } from 'vitest';
import { type Command, namesOf, type RequestId, requestsOf } from '../../src/core/commands.ts';
import { decodeRequest } from '../../src/core/records.ts';
import { acquire, cancel, release } from './commands.ts';
import { decided, worldWith } from './views.ts';
import type { World } from './world.ts';

describe('a command', () => {
  const id = { session: 's', request: 'r' };
  const to = { session: 't', request: 'q' };
  const names = ['x', 'y'];
  it.each<[Command, readonly string[], readonly RequestId[]]>([
    [acquire('s', 'r', names), names, [id]],
    [{ kind: 'release', ...id, names, tokens: [1n, 2n], forget: false }, names, [id]],
    [{ kind: 'cancel', ...id, names, inbox: 'i', forget: false }, names, [id]],
    [{ kind: 'bury', ...id, names, ghost: null }, names, [id]],
    [{ kind: 'break', ...id, name: 'x', token: 1n, reason: '', by: '', atMs: 0 }, ['x'], [id]],
    [
      { kind: 'transfer', ...id, names, tokens: [1n, 2n], to, owner: {}, inbox: '', forget: false },
      names,
      [id, to],
    ],
    [{ kind: 'promote', name: 'x' }, ['x'], []],
  ])('names what has to be loaded for it: $kind', (command, locks, requests) => {
    expect(namesOf(command)).toEqual(locks);
    expect(requestsOf(command)).toEqual(requests.map((each) => expect.objectContaining(each)));
  });
});

describe('the write', () => {
  const commands: [string, (world: World) => Command][] = [
    ['an acquire', () => acquire('c', 'new', ['y', 'z'])],
    ['a place in the queue', () => acquire('c', 'new', 'x')],
    ['a release', (world) => release(world, 'a', 'r')],
    ['a release that is forgotten', (world) => release(world, 'a', 'r', true)],
    ['a cancel', (world) => cancel(world, 'b', 'r')],
    ['a shared acquire', () => acquire('c', 'new', [{ name: 's', mode: 'shared' }])],
    ['the last release', (world) => release(world, 's', 'r', true)],
  ];

  it.each(commands)('of %s is guarded by all that it rests on, and leaves what it says', (_what, make) => {
    const world = worldWith('abcs');
    world.run(acquire('a', 'r', 'x'));
    world.run(acquire('b', 'r', 'x'));
    world.run(acquire('s', 'r', [{ name: 's', mode: 'shared' }]));
    const command = make(world);
    const before = world.load([command]);
    const { write, after, missing } = decided(world, command);
    if (write === null) throw new Error('It was to write something.');
    expect(missing).toEqual([]);
    const versions = new Map(write.guards.map(({ key, version }) => [key, version]));
    for (const [name, { version }] of before.locks) expect(versions.get(`lock/${name}`)).toBe(version);
    for (const [key, { version }] of before.requests) expect(versions.get(key)).toBe(version);
    expect(versions.size).toBe(before.locks.size + before.requests.size);
    const result = world.store.commit(write, world.nowMs);
    if (result.kind !== 'committed') throw new Error(`It was to be committed, and met ${result.kind}.`);
    const left = after(result.version);
    expect(new Map(left.locks)).toEqual(world.load([command]).locks);
    for (const [key, { version, record }] of left.requests) {
      const entry = world.store.read({ keys: [key], ranges: [] }).entries.get(key);
      expect(version).toBe(entry?.version ?? null);
      expect(record).toEqual(entry === undefined ? null : decodeRequest(key, entry.value));
    }
  });

  it('a decision that lacks a lock says which, and is void', () => {
    const world = worldWith('a');
    world.run(acquire('a', 'r', ['x', 'y']));
    const command = { ...cancel(world, 'a', 'r'), names: ['x'] };
    expect(decided(world, command).missing).toEqual(['y']);
  });

  it('nothing is written where nothing changes', () => {
    const world = worldWith('ab');
    world.run(acquire('a', 'r', 'x'));
    world.run(acquire('b', 'r', 'x'));
    for (const command of [
      acquire('a', 'r', 'x'),
      acquire('b', 'r', 'x'),
      acquire('b', 'other', 'x', { wait: false }),
    ])
      expect(decided(world, command).write).toBeNull();
  });
});
