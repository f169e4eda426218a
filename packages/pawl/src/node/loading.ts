import type { Loaded, LoadedLock, LoadedRequest } from '../core/draft.ts';
import { lockKey, waitPrefix } from '../core/names.ts';
import { decodeLock, decodeRequest, decodeWaiter } from '../core/records.ts';
import type { Engine } from '../engines/engine.ts';
import type { Pending } from './grouping.ts';

/** Loads all locks and requests that `pending` touches, in one round trip and from one snapshot. */
export async function load(engine: Engine, pending: readonly Pending[], headWindow: number): Promise<Loaded> {
  const names = [...new Set(pending.flatMap(({ touch }) => touch.names))];
  const requestKeys = new Set(pending.flatMap(({ touch }) => touch.requestKeys));
  const { entries, ranges } = await engine.read({
    keys: [...names.map(lockKey), ...requestKeys],
    ranges: names.map((name) => ({ prefix: waitPrefix(name), limit: headWindow })),
  });
  const locks = new Map<string, LoadedLock>();
  for (const [i, name] of names.entries()) {
    const entry = entries.get(lockKey(name));
    locks.set(name, {
      version: entry?.version ?? null,
      record: entry === undefined ? null : decodeLock(entry.key, entry.value, entry.version),
      head: (ranges[i] ?? []).map(({ key, value }) => decodeWaiter(key, value)),
    });
  }
  const requests = new Map<string, LoadedRequest>();
  for (const key of requestKeys) {
    const entry = entries.get(key);
    const record = entry === undefined ? null : decodeRequest(key, entry.value);
    requests.set(key, { version: entry?.version ?? null, record });
  }
  return { locks, requests };
}
