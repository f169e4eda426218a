import type { Known, Loaded, LoadedLock, LoadedRequest } from '../core/draft.ts';
import { TransientMap } from '../transient-map.ts';
import type { Pending } from './grouping.ts';

/** So many locks, and as many requests, are remembered; what drops out is read again. */
const ENTRIES = 10_000;
/** After a guess about a lock was wrong, so many commands on it read first: others use it too. */
const DOUBTS = 16;

const IDLE: LoadedLock = { version: null, record: null, head: [] };
const NEW: LoadedRequest = { version: null, record: null };

/**
 * What this node last read or wrote, so that it need not read it again: most acquires find an idle lock, and most releases what the
 * acquire wrote. It may be outdated, and that is harmless: whatever is decided on it is committed only if the store is still in that
 * state. An outcome that writes nothing must not rest on it.
 */
export class LastKnown {
  readonly #locks = new TransientMap<string, LoadedLock>();
  readonly #requests = new TransientMap<string, LoadedRequest>();
  readonly #doubts = new TransientMap<string, number>();
  readonly #headWindow: number;

  /** @param headWindow so many first waiters of a queue are kept. */
  constructor(headWindow: number) {
    this.#headWindow = headWindow;
  }

  /**
   * @returns what the commands touch as far as it is known, or `undefined` where the store has to be asked: for the next waiters of a
   *   long queue, and for anything unknown but a lock and a request to acquire, which are taken to be new.
   */
  recall(group: readonly Pending[]): Loaded | undefined {
    const locks = new Map<string, LoadedLock>();
    const requests = new Map<string, LoadedRequest>();
    for (const { command, touch } of group) {
      const guess = command.kind === 'acquire';
      for (const name of touch.names) {
        const lock = locks.get(name) ?? this.#lock(name, guess);
        if (lock === undefined) return undefined;
        locks.set(name, lock);
      }
      for (const key of touch.requestKeys) {
        const request = this.#requests.get(key) ?? (guess ? NEW : undefined);
        if (request === undefined) return undefined;
        requests.set(key, request);
      }
    }
    return { locks, requests };
  }

  /** Remembers what a commit left behind. */
  note({ locks, requests }: Known): void {
    for (const [name, lock] of locks) {
      const head = lock.head.length > this.#headWindow ? lock.head.slice(0, this.#headWindow) : lock.head;
      remember(this.#locks, name, lock.record === null ? undefined : { ...lock, head });
    }
    for (const [key, request] of requests)
      remember(this.#requests, key, request.record === null ? undefined : request);
  }

  /** What was known of these was wrong. */
  doubt({ locks, requests }: Known): void {
    for (const [name] of locks) {
      this.#locks.delete(name);
      remember(this.#doubts, name, DOUBTS);
    }
    for (const [key] of requests) this.#requests.delete(key);
  }

  #lock(name: string, guess: boolean): LoadedLock | undefined {
    const doubts = this.#doubts.get(name) ?? 0;
    if (doubts > 0) {
      remember(this.#doubts, name, doubts === 1 ? undefined : doubts - 1);
      return undefined;
    }
    const known = this.#locks.get(name);
    if (known === undefined) return guess ? IDLE : undefined;
    const waiting = known.record?.waiting ?? 0;
    return waiting === 0 || known.head.length > 0 ? known : undefined;
  }
}

/** Sets or, with `undefined`, removes; the oldest go where there are too many. */
function remember<T>(map: TransientMap<string, T>, key: string, value: T | undefined): void {
  map.delete(key);
  if (value === undefined) return;
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= ENTRIES) return;
    map.delete(oldest);
  }
}
