import { TransientMap } from '../../transient-map.ts';
import type { CommitResult, ConditionalWrite, Entry, ReadQuery, ReadResult, Version } from '../engine.ts';

/** One session as the store knows it. */
interface StoredSession {
  readonly ttlMs: number;
  expiresAtMs: number;
}

type Listener<T extends unknown[]> = (...args: T) => void;

/**
 * What engines over memory share: entries, sessions and inboxes. It knows no clock; the time is an argument. Any number of
 * engines in one process may work on one store, as processes work on one database.
 */
export class MemoryStore {
  readonly #entries = new TransientMap<string, Entry>();
  /** The keys in order, for ranges. */
  readonly #keys: string[] = [];
  readonly #sessions = new Map<string, StoredSession>();
  readonly #ended = new Set<string>();
  readonly #endingListeners = new Set<Listener<[readonly string[]]>>();
  readonly #inboxes = new Map<string, Set<Listener<[string, Version]>>>();
  readonly #expiryListeners = new Set<() => void>();
  #version: Version = 0n;
  /** No session expires before this. */
  #quietUntilMs = Number.POSITIVE_INFINITY;

  /** How many entries there are. */
  get size(): number {
    return this.#entries.size;
  }

  /** How many sessions are live, or ended and not yet forgotten. */
  get sessionCount(): number {
    return this.#sessions.size + this.#ended.size;
  }

  read(query: ReadQuery): ReadResult {
    const entries = new Map<string, Entry>();
    for (const key of query.keys) {
      const entry = this.#entries.get(key);
      if (entry !== undefined) entries.set(key, entry);
    }
    return { entries, ranges: query.ranges.map(({ prefix, limit }) => this.list(prefix, limit)) };
  }

  list(prefix: string, limit: number, after?: string): Entry[] {
    const found: Entry[] = [];
    let index = after !== undefined && after > prefix ? this.#indexAfter(after) : this.#indexOf(prefix);
    for (; index < this.#keys.length && found.length < limit; index += 1) {
      const key = this.#keys[index];
      const entry = key === undefined ? undefined : this.#entries.get(key);
      if (entry === undefined || !entry.key.startsWith(prefix)) break;
      found.push(entry);
    }
    return found;
  }

  commit(write: ConditionalWrite, nowMs: number): CommitResult {
    this.expire(nowMs);
    const dead = write.alive.filter((id) => !this.#sessions.has(id));
    if (dead.length > 0) return { kind: 'sessionsEnded', sessions: dead };
    const differing = write.guards.filter(
      ({ key, version }) => (this.#entries.get(key)?.version ?? null) !== version,
    );
    if (differing.length > 0) return { kind: 'conflict', keys: differing.map(({ key }) => key) };
    if (write.puts.length > 0) this.#version += 1n;
    for (const { key, value } of write.puts) this.#put({ key, value, version: this.#version });
    for (const key of write.deletes) this.#delete(key);
    const version = this.#version;
    for (const { inbox, message } of write.wakes) {
      for (const listener of this.#inboxes.get(inbox) ?? []) queueMicrotask(() => listener(message, version));
    }
    return { kind: 'committed', version };
  }

  openSession(id: string, ttlMs: number, nowMs: number): boolean {
    this.expire(nowMs);
    if (this.#ended.has(id)) return false;
    this.#sessions.set(id, { ttlMs, expiresAtMs: nowMs + ttlMs });
    this.#quietUntilMs = Math.min(this.#quietUntilMs, nowMs + ttlMs);
    for (const listener of this.#expiryListeners) listener();
    return true;
  }

  keepAlive(ids: readonly string[], nowMs: number): Set<string> {
    this.expire(nowMs);
    const alive = new Set<string>();
    for (const id of ids) {
      const session = this.#sessions.get(id);
      if (session === undefined) continue;
      session.expiresAtMs = nowMs + session.ttlMs;
      alive.add(id);
    }
    return alive;
  }

  endSession(id: string): void {
    if (this.#sessions.delete(id)) this.#announce([id]);
  }

  /** Ends all sessions whose time has come. */
  expire(nowMs: number): void {
    if (nowMs < this.#quietUntilMs) return;
    const due = [...this.#sessions].filter(([, session]) => session.expiresAtMs <= nowMs).map(([id]) => id);
    for (const id of due) this.#sessions.delete(id);
    this.#quietUntilMs = Number.POSITIVE_INFINITY;
    for (const { expiresAtMs } of this.#sessions.values()) {
      this.#quietUntilMs = Math.min(this.#quietUntilMs, expiresAtMs);
    }
    if (due.length > 0) this.#announce(due);
  }

  /** When to look for expired sessions next; infinity where no session is live. */
  get nextExpiryMs(): number {
    return this.#quietUntilMs;
  }

  /** Calls `listener` whenever a session was opened, so that the next expiry may be sooner. */
  onOpened(listener: () => void): () => void {
    this.#expiryListeners.add(listener);
    return () => this.#expiryListeners.delete(listener);
  }

  onEnded(listener: (ids: readonly string[]) => void): () => void {
    this.#endingListeners.add(listener);
    const before = [...this.#ended];
    if (before.length > 0) queueMicrotask(() => listener(before));
    return () => this.#endingListeners.delete(listener);
  }

  /** Whether the session has not ended at this time. Looks only, and changes nothing. */
  isLive(id: string, nowMs: number): boolean {
    return (this.#sessions.get(id)?.expiresAtMs ?? Number.NEGATIVE_INFINITY) > nowMs;
  }

  /** Sessions that have ended and were not yet forgotten. */
  endedSessions(): readonly string[] {
    return [...this.#ended];
  }

  forget(ids: readonly string[]): void {
    for (const id of ids) this.#ended.delete(id);
  }

  subscribe(inbox: string, listener: (message: string, version: Version) => void): () => void {
    const listeners = this.#inboxes.get(inbox) ?? new Set();
    this.#inboxes.set(inbox, listeners);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#inboxes.delete(inbox);
    };
  }

  raiseVersion(version: Version): Version {
    const before = this.#version;
    if (version > before) this.#version = version;
    return before;
  }

  #announce(ids: readonly string[]): void {
    for (const id of ids) this.#ended.add(id);
    for (const listener of this.#endingListeners) queueMicrotask(() => listener(ids));
  }

  #put(entry: Entry): void {
    if (!this.#entries.has(entry.key)) this.#keys.splice(this.#indexOf(entry.key), 0, entry.key);
    this.#entries.set(entry.key, entry);
  }

  #delete(key: string): void {
    if (this.#entries.delete(key)) this.#keys.splice(this.#indexOf(key), 1);
  }

  /** The index of the first key that is not less than `key`. Keys are ASCII, so their order is that of their bytes. */
  #indexOf(key: string): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#keys[middle] ?? '') < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #indexAfter(key: string): number {
    const index = this.#indexOf(key);
    return this.#keys[index] === key ? index + 1 : index;
  }
}
