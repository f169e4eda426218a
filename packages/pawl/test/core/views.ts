import type { Command, News } from '../../src/core/commands.ts';
import { decide } from '../../src/core/decide.ts';
import { World, type WorldOptions } from './world.ts';

export const SHARED = { name: 'x', mode: 'shared' } as const;

/** @param sessions one letter each. */
export function worldWith(sessions: string, options: WorldOptions = {}): World {
  const world = new World(options);
  for (const session of sessions) world.openSession(session, 1_000_000);
  return world;
}

/** Who holds the lock, as session and slot, in the order of its record. */
export function holders(world: World, name = 'x'): string[] {
  return world.lock(name)?.holders.map(({ session, slot }) => `${session}${slot}`) ?? [];
}

/** The news since the last time: the store delivers them once the turn is over. */
export async function newsOf(world: World): Promise<readonly News[]> {
  await Promise.resolve();
  return world.news.splice(0);
}

/** Kind and session of each of {@link newsOf}. */
export async function toldTo(world: World): Promise<string[]> {
  return (await newsOf(world)).map(({ kind, to }) => `${kind} ${to.session}`);
}

/** What is decided on one command where `ended` are known to have ended. */
export function decided(world: World, command: Command, ended: readonly string[] = []) {
  return decide(world.load([command]), [command], { ended: new Set(ended), maxWaiters: 9 });
}
