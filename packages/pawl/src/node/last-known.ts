import { requestsOf } from '../core/commands.ts';
import type { Loaded, LoadedLock, LoadedRequest } from '../core/draft.ts';
import { LOCK_PREFIX, lockKey, REQUEST_PREFIX, requestKey } from '../core/names.ts';
import { decodeLock, decodeRequest, type Version } from '../core/records.ts';
import type { ConditionalWrite } from '../core/write.ts';
import { lockNamesOf, type Pending } from './grouping.ts';

/** So many entries are remembered; what drops out is read again. */
const ENTRIES = 10_000;
/** After a guess about a lock was wrong, so many commands on it read first: others use it too. */
const DOUBTS = 16;

type Known = { readonly value: string; readonly version: Version };

/**
 * What this node last wrote, so that it need not read it again: most acquires find an idle lock, and most releases what the acquire
 * wrote. It may be outdated, and that is harmless: whatever is decided on it is committed only if the store is still in that state.
 * An outcome that writes nothing must not rest on it.
 */
export class LastKnown {
  readonly #entries = new Map<string, Known>();
  readonly #doubts = new Map<string, number>();

  /**
   * @returns what the commands touch as far as it is known, or `undefined` where the store has to be asked: a lock with a queue, or
   *   anything unknown but a lock and a request to acquire, which are taken to be new.
   */
  recall(group: readonly Pending[]): Loaded | undefined {
    const locks = new Map<string, LoadedLock>();
    const requests = new Map<string, LoadedRequest>();
    for (const item of group) {
      const guess = item.command.kind === 'acquire';
      for (const name of lockNamesOf(item)) {
        const lock = this.#lock(name, guess);
        if (lock === undefined) return undefined;
        locks.set(name, lock);
      }
      for (const id of requestsOf(item.command)) {
        const key = requestKey(id.session, id.request);
        const known = this.#entries.get(key);
        if (known === undefined && !guess) return undefined;
        const record = known === undefined ? null : decodeRequest(key, known.value);
        requests.set(key, { version: known?.version ?? null, record });
      }
    }
    return { locks, requests };
  }

  /** Remembers what a write left behind. */
  note({ puts, deletes }: ConditionalWrite, version: Version): void {
    for (const key of deletes) this.#entries.delete(key);
    for (const { key, value } of puts) {
      if (!key.startsWith(LOCK_PREFIX) && !key.startsWith(REQUEST_PREFIX)) continue;
      this.#entries.delete(key);
      this.#entries.set(key, { value, version });
    }
    trim(this.#entries);
  }

  /** What was known of these keys was wrong. */
  doubt(keys: readonly string[]): void {
    for (const key of keys) {
      this.#entries.delete(key);
      this.#doubts.delete(key);
      if (key.startsWith(LOCK_PREFIX)) this.#doubts.set(key, DOUBTS);
    }
    trim(this.#doubts);
  }

  #lock(name: string, guess: boolean): LoadedLock | undefined {
    const key = lockKey(name);
    const known = this.#entries.get(key);
    if (known !== undefined) {
      const record = decodeLock(key, known.value, known.version);
      // The first waiters would be needed as well.
      return record.waiting === 0 ? { version: known.version, record, head: [] } : undefined;
    }
    const doubts = this.#doubts.get(key) ?? 0;
    if (doubts > 1) this.#doubts.set(key, doubts - 1);
    else this.#doubts.delete(key);
    return guess && doubts === 0 ? { version: null, record: null, head: [] } : undefined;
  }
}

function trim(map: Map<string, unknown>): void {
  for (const oldest of map.keys()) {
    if (map.size <= ENTRIES) return;
    map.delete(oldest);
  }
}
