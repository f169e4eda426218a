import type { Loaded, LoadedLock, LoadedRequest } from '../core/draft.ts';
import { lockKey, waitPrefix } from '../core/names.ts';
import { decodeLock, decodeRequest, decodeWaiter } from '../core/records.ts';
import type { Engine } from '../engines/engine.ts';
import type { Pending } from './grouping.ts';

/** What was loaded. A record that cannot be read is not in it: it concerns only those who need it. */
export interface Reading extends Loaded {
  /** Why, by lock name and by request key. */
  readonly unreadable: {
    readonly locks: ReadonlyMap<string, unknown>;
    readonly requests: ReadonlyMap<string, unknown>;
  };
}

/** Loads all locks and requests that `pending` touches, in one round trip and from one snapshot. */
export async function load(
  engine: Engine,
  pending: readonly Pending[],
  headWindow: number,
): Promise<Reading> {
  const names = [...new Set(pending.flatMap(({ touch }) => touch.names))];
  const requestKeys = new Set(pending.flatMap(({ touch }) => touch.requestKeys));
  const { entries, ranges } = await engine.read({
    keys: [...names.map(lockKey), ...requestKeys],
    ranges: names.map((name) => ({ prefix: waitPrefix(name), limit: headWindow })),
  });
  const locks = new Map<string, LoadedLock>();
  const unreadable = { locks: new Map<string, unknown>(), requests: new Map<string, unknown>() };
  for (const [i, name] of names.entries()) {
    const entry = entries.get(lockKey(name));
    try {
      locks.set(name, {
        version: entry?.version ?? null,
        record: entry === undefined ? null : decodeLock(entry.key, entry.value, entry.version),
        head: (ranges[i] ?? []).map(({ key, value }) => decodeWaiter(key, value)),
      });
    } catch (error) {
      unreadable.locks.set(name, error);
    }
  }
  const requests = new Map<string, LoadedRequest>();
  for (const key of requestKeys) {
    const entry = entries.get(key);
    try {
      const record = entry === undefined ? null : decodeRequest(key, entry.value);
      requests.set(key, { version: entry?.version ?? null, record });
    } catch (error) {
      unreadable.requests.set(key, error);
    }
  }
  return { locks, requests, unreadable };
}

/** Why what a command touches cannot be decided on, or `undefined` where all of it could be read. */
export function whyUnreadable({ unreadable }: Reading, { touch }: Pending): unknown {
  for (const name of touch.names) if (unreadable.locks.has(name)) return unreadable.locks.get(name);
  for (const key of touch.requestKeys) if (unreadable.requests.has(key)) return unreadable.requests.get(key);
  return undefined;
}
