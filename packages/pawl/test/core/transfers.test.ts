import { describe, expect, it } from 'vitest';
import type { TransferCommand } from '../../src/core/commands.ts';
import { decide } from '../../src/core/decide.ts';
import { acquire, release, tokenOf } from './commands.ts';
import { worldWith } from './views.ts';
import type { World } from './world.ts';

/** The transfer of all that the request holds to request `r9` of the session `to`. */
function transfer(world: World, session: string, request: string, to: string): TransferCommand {
  const names = world.request({ session, request })?.locks.map((lock) => lock.name) ?? [];
  return {
    kind: 'transfer',
    session,
    request,
    names,
    tokens: names.map((name) => tokenOf(world, name, session, request) ?? 0n),
    to: { session: to, request: 'r9' },
    owner: { by: to },
    inbox: `inbox of ${to}`,
    forget: false,
  };
}

describe('a transfer', () => {
  it('S1: moves the same grant: token and slot stay, and the owner and the inbox are the new ones', () => {
    const world = worldWith('ab');
    world.run(acquire('a', 'r1', [{ name: 's', permits: 3 }]));
    world.run(acquire('a', 'r2', [{ name: 's', permits: 3 }]));
    const before = tokenOf(world, 's', 'a', 'r2');
    const outcome = world.run(transfer(world, 'a', 'r2', 'b'));
    expect(outcome).toEqual({
      kind: 'transferred',
      grants: [{ name: 's', mode: 'exclusive', slot: 1, token: before }],
    });
    expect(world.lock('s')?.holders.find((holder) => holder.session === 'b')).toMatchObject({
      request: 'r9',
      slot: 1,
      token: before,
      owner: { by: 'b' },
      inbox: 'inbox of b',
    });
    expect(world.lock('s')?.holders).toHaveLength(2);
    expect(world.request({ session: 'a', request: 'r2' })).toMatchObject({
      state: 'done',
      how: 'transferred',
    });
    expect(world.request({ session: 'b', request: 'r9' })).toMatchObject({
      state: 'held',
      inbox: 'inbox of b',
    });
  });

  it('S5: once more after a lost reply it gives the same answer, and moves nothing', () => {
    const world = worldWith('ab');
    world.run(acquire('a', 'r1', ['x', { name: 'y', mode: 'shared' }]));
    const command = transfer(world, 'a', 'r1', 'b');
    const first = world.run(command);
    const stored = world.lock('x');
    expect(world.run(command)).toEqual(first);
    expect(first).toMatchObject({ kind: 'transferred', grants: [{ mode: 'exclusive' }, { mode: 'shared' }] });
    expect(world.lock('x')).toEqual(stored);
  });

  it('S5: once more after the new holder gave it back it is not held, and nothing comes back', () => {
    const world = worldWith('abc');
    world.run(acquire('a', 'r1', 'x'));
    const command = transfer(world, 'a', 'r1', 'b');
    world.run(command);
    world.run(release(world, 'b', 'r9'));
    world.run(acquire('c', 'r', 'x'));
    expect(world.run(command)).toEqual({ kind: 'notHeld' });
    expect(world.lock('x')?.holders.map(({ session }) => session)).toEqual(['c']);
  });

  it('S4: under another token than the grant’s it moves nothing, the first time and when repeated', () => {
    const world = worldWith('ab');
    world.run(acquire('a', 'r1', ['x', 'y']));
    const command = transfer(world, 'a', 'r1', 'b');
    const wrong = { ...command, tokens: [command.tokens[0] ?? 0n, 999n] };
    expect(world.run(wrong)).toEqual({ kind: 'notHeld' });
    expect(world.request({ session: 'b', request: 'r9' })).toBeUndefined();
    expect(world.lock('x')?.holders.map(({ session }) => session)).toEqual(['a']);
    world.run(command);
    expect(world.run(wrong)).toEqual({ kind: 'notHeld' });
    expect(world.run({ ...command, names: ['x', 'z'] })).toEqual({ kind: 'notHeld' });
  });

  it('S4: what waits, or was given back, cannot be moved', () => {
    const world = worldWith('abc');
    world.run(acquire('a', 'r1', 'x'));
    world.run(acquire('c', 'r1', 'x'));
    expect(world.run(transfer(world, 'c', 'r1', 'b'))).toEqual({ kind: 'notHeld' });
    const command = transfer(world, 'a', 'r1', 'b');
    world.run(release(world, 'a', 'r1'));
    expect(world.run(command)).toEqual({ kind: 'notHeld' });
    expect(world.lock('x')?.holders.map(({ session }) => session)).toEqual(['c']);
  });

  it('S3: nothing moves to or from a session that has ended', () => {
    for (const dead of ['a', 'b']) {
      const world = worldWith('ab');
      world.run(acquire('a', 'r1', 'x'));
      const command = transfer(world, 'a', 'r1', 'b');
      world.store.endSession(dead);
      expect(world.run({ ...command, forget: true })).toEqual({ kind: 'notHeld' });
      expect(world.run(command)).toEqual({ kind: 'notHeld' });
      const ended = new Set([dead]);
      const decision = decide(world.load([command]), [command], { ended, maxWaiters: 9 });
      expect(decision).toMatchObject({ outcomes: [{ kind: 'notHeld' }], write: null });
    }
  });

  it('forgets the old request only where it is told to', () => {
    const world = worldWith('ab');
    world.run(acquire('a', 'r1', 'x'));
    world.run({ ...transfer(world, 'a', 'r1', 'b'), forget: true });
    expect(world.request({ session: 'a', request: 'r1' })).toBeUndefined();
    expect(tokenOf(world, 'x', 'b', 'r9')).toBeDefined();
  });
});
