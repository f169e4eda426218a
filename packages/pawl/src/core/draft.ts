import { type KeyedRequest, keyOf, type News } from './commands.ts';
import { lockKey, waitKey } from './names.ts';
import { encodeNews } from './news.ts';
import {
  encodeLock,
  encodeRequest,
  encodeWaiter,
  type Holder,
  type LockRecord,
  type RequestRecord,
  type Version,
  type Waiter,
} from './records.ts';
import type { ConditionalWrite, Guard, Put, Wake } from './write.ts';

/** A lock as it was read: its record and the first waiters of its queue. */
export interface LoadedLock {
  readonly version: Version | null;
  readonly record: LockRecord | null;
  readonly head: readonly Waiter[];
}

/** A request's record as it was read. */
export interface LoadedRequest {
  readonly version: Version | null;
  readonly record: RequestRecord | null;
}

/** What the commands of one decision read: all locks and requests they name, from one snapshot of the store. */
export interface Loaded {
  readonly locks: ReadonlyMap<string, LoadedLock>;
  /** By {@link keyOf} the request. */
  readonly requests: ReadonlyMap<string, LoadedRequest>;
}

/** What is known of some locks and requests, each named once, as in {@link Loaded}. */
export interface Known {
  readonly locks: Iterable<readonly [string, LoadedLock]>;
  readonly requests: Iterable<readonly [string, LoadedRequest]>;
}

/** What is true around the decision: the core knows no clock and no network. */
export interface Surroundings {
  /** Sessions known to have ended. Nothing is granted to them. */
  readonly ended: ReadonlySet<string>;
  readonly maxWaiters: number;
}

/** A lock while commands change it. */
export interface DraftLock {
  readonly name: string;
  readonly version: Version | null;
  /** Permits of a semaphore, or `null` for a lock. Means nothing while the lock is idle. */
  permits: number | null;
  holders: readonly Holder[];
  /** The loaded start of the queue. */
  queue: readonly Waiter[];
  nextTicket: number;
  waiting: number;
  nextShared: number;
  changed: boolean;
}

const IDLE: LockRecord = { permits: null, holders: [], nextTicket: 0, waiting: 0, nextShared: 0 };
const NOTHING: LoadedLock = { version: null, record: null, head: [] };

/** The working copy on which commands are decided, and out of which the one conditional write comes. */
export class Draft {
  readonly surroundings: Surroundings;
  /** Waiters that were let in. */
  admitted = 0;
  /** Locks whose queue may go on entering: beyond what was loaded, or beyond what one decision lets in. */
  readonly unfinished: string[] = [];
  /** Ended sessions that are first in a queue: bury them, so that the next can enter. */
  readonly inTheWay: string[] = [];
  /** Locks that turned out to be needed but were not loaded: load them too and decide again. */
  readonly missing: string[] = [];
  readonly #loaded: Loaded;
  readonly #locks = new Map<string, DraftLock>();
  readonly #requests = new Map<string, RequestRecord | null>();
  /** Waiters and other entries; made for the first, since most drafts have none. */
  #entries: Map<string, string | null> | undefined;
  readonly #alive = new Set<string>();
  readonly #wakes: Wake[] = [];

  constructor(loaded: Loaded, surroundings: Surroundings) {
    this.#loaded = loaded;
    this.surroundings = surroundings;
  }

  lock(name: string): DraftLock {
    let lock = this.#locks.get(name);
    if (lock === undefined) {
      const loaded = this.#loaded.locks.get(name);
      if (loaded === undefined) this.missing.push(name);
      const { version, record, head } = loaded ?? NOTHING;
      const { permits, holders, nextTicket, waiting, nextShared } = record ?? IDLE;
      lock = {
        name,
        version,
        permits,
        holders,
        queue: head,
        nextTicket,
        waiting,
        nextShared,
        changed: false,
      };
      this.#locks.set(name, lock);
    }
    return lock;
  }

  request(id: KeyedRequest): RequestRecord | null {
    const key = keyOf(id);
    const changed = this.#requests.get(key);
    return changed === undefined ? (this.#loaded.requests.get(key)?.record ?? null) : changed;
  }

  /** Writes a request's record. Only for a live session: a record of an ended one would never be cleaned up. */
  putRequest(id: KeyedRequest, record: RequestRecord): void {
    this.#requests.set(keyOf(id), record);
    this.#alive.add(id.session);
  }

  /** Deletes a request's record, and what is remembered only as long as it is. */
  deleteRequest(id: KeyedRequest): void {
    for (const key of this.request(id)?.breaks ?? []) this.#setEntry(key, null);
    this.#requests.set(keyOf(id), null);
  }

  putEntry(key: string, value: string): void {
    this.#setEntry(key, value);
  }

  enqueue(lock: DraftLock, waiter: Waiter): void {
    this.#setEntry(waitKey(lock.name, waiter.ticket), encodeWaiter(waiter));
    if (lock.queue.length === lock.waiting) lock.queue = [...lock.queue, waiter];
    lock.waiting += 1;
    lock.nextTicket = waiter.ticket + 1;
    lock.changed = true;
  }

  /** Writes a waiter anew, in its place. */
  replaceWaiter(lock: DraftLock, waiter: Waiter): void {
    this.#setEntry(waitKey(lock.name, waiter.ticket), encodeWaiter(waiter));
    lock.queue = lock.queue.map((each) => (each.ticket === waiter.ticket ? waiter : each));
    // Every change of a queue changes the lock's record, whose version guards it all.
    lock.changed = true;
  }

  dequeue(lock: DraftLock, ticket: number): void {
    this.#setEntry(waitKey(lock.name, ticket), null);
    lock.queue = lock.queue.filter((waiter) => waiter.ticket !== ticket);
    lock.waiting -= 1;
    lock.changed = true;
  }

  /** More of the queue may enter than this decision can let in. */
  goOnLater({ name }: DraftLock): void {
    if (!this.unfinished.includes(name)) this.unfinished.push(name);
  }

  /** The session has ended and is first in a queue. */
  bury(session: string): void {
    if (!this.inTheWay.includes(session)) this.inTheWay.push(session);
  }

  requireAlive(session: string): void {
    this.#alive.add(session);
  }

  tell(inbox: string, news: News): void {
    this.#wakes.push({ inbox, message: encodeNews(news) });
  }

  /** The write that makes the draft true, or `null` where nothing changed. */
  toWrite(): ConditionalWrite | null {
    const puts: Put[] = [];
    const deletes: string[] = [];
    const write = (key: string, value: string | null) => {
      if (value === null) deletes.push(key);
      else puts.push({ key, value });
    };
    for (const [key, value] of this.#entries ?? []) write(key, value);
    for (const [key, record] of this.#requests) write(key, record === null ? null : encodeRequest(record));
    for (const lock of this.#locks.values())
      if (lock.changed) write(lockKey(lock.name), encodeDraftLock(lock));
    if (puts.length === 0 && deletes.length === 0 && this.#wakes.length === 0) return null;
    return { guards: this.#guards(), alive: [...this.#alive], puts, deletes, wakes: this.#wakes };
  }

  /** What the records are once the write was committed at `version`. */
  after(version: Version): Known {
    const locks: [string, LoadedLock][] = [];
    for (const [name, lock] of this.#locks)
      locks.push([name, lock.changed ? stateAt(lock, version) : this.#loadedLock(name)]);
    const requests: [string, LoadedRequest][] = [];
    for (const each of this.#loaded.requests) if (!this.#requests.has(each[0])) requests.push(each);
    for (const [key, record] of this.#requests)
      requests.push([key, { version: record === null ? null : version, record }]);
    return { locks, requests };
  }

  #setEntry(key: string, value: string | null): void {
    this.#entries ??= new Map();
    this.#entries.set(key, value);
  }

  #loadedLock(name: string): LoadedLock {
    return this.#loaded.locks.get(name) ?? NOTHING;
  }

  #guards(): Guard[] {
    const guards: Guard[] = [];
    for (const { name, version } of this.#locks.values()) guards.push({ key: lockKey(name), version });
    for (const [key, { version }] of this.#loaded.requests) guards.push({ key, version });
    return guards;
  }
}

/** The record to store, or `null` where the lock is idle: an idle lock leaves nothing behind. */
function recordOf(lock: DraftLock, holders = lock.holders): LockRecord | null {
  if (holders.length === 0 && lock.waiting === 0) return null;
  const { permits, nextTicket, waiting, nextShared } = lock;
  return { permits, holders, nextTicket, waiting, nextShared };
}

function encodeDraftLock(lock: DraftLock): string | null {
  const record = recordOf(lock);
  return record === null ? null : encodeLock(record);
}

/** As it would be read back: grants of this very commit have its version as their token. */
function stateAt(lock: DraftLock, version: Version): LoadedLock {
  const holders = lock.holders.map((holder) =>
    holder.token === undefined ? { ...holder, token: version } : holder,
  );
  const record = recordOf(lock, holders);
  return record === null ? NOTHING : { version, record, head: lock.queue };
}
