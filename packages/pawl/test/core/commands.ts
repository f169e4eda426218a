import type { AcquireCommand, AskedLock, ReleaseCommand } from '../../src/core/commands.ts';
import type { World } from './world.ts';

/** An acquire of one exclusive lock that waits, unless told otherwise. */
export function acquire(
  session: string,
  request: string,
  asked: string | readonly (string | Partial<AskedLock>)[],
  settings: Partial<AcquireCommand> = {},
): AcquireCommand {
  const list = typeof asked === 'string' ? [asked] : asked;
  const locks = list.map((ask): AskedLock => {
    const part = typeof ask === 'string' ? { name: ask } : ask;
    return { name: 'x', mode: 'exclusive', permits: null, ...part };
  });
  return {
    kind: 'acquire',
    session,
    request,
    locks,
    wait: true,
    owner: {},
    inbox: 'inbox',
    lockDelayMs: 0,
    barging: false,
    ...settings,
  };
}

/** The release of whatever the request holds now. */
export function release(world: World, session: string, request: string, forget = false): ReleaseCommand {
  const names = world.request({ session, request })?.locks.map((lock) => lock.name) ?? ['x'];
  const tokens = names.map((name) => tokenOf(world, name, session, request) ?? 1n);
  return { kind: 'release', session, request, names, tokens, forget };
}

export function tokenOf(world: World, name: string, session: string, request: string): bigint | undefined {
  return world.lock(name)?.holders.find((each) => each.session === session && each.request === request)
    ?.token;
}

export function cancel(world: World, session: string, request: string, forget = false) {
  const names = world.request({ session, request })?.locks.map((lock) => lock.name) ?? [];
  return { kind: 'cancel', session, request, names, inbox: 'inbox', forget } as const;
}
