import { type AcquireCommand, type Command, namesOf, type OutcomeOf, requestsOf } from '../core/commands.ts';
import { decide } from '../core/decide.ts';
import type { LoadedLock, LoadedRequest } from '../core/draft.ts';
import { lockKey, requestKey, requestOfKey, requestPrefix, waitPrefix } from '../core/names.ts';
import { decodeLock, decodeRequest, decodeWaiter, type Version } from '../core/records.ts';
import { MemoryStore } from '../engines/memory/store.ts';
import type { Token } from '../token.ts';

/** How an acquire of the lab differs from the plainest one. */
export type LabAsk = Partial<Pick<AcquireCommand, 'locks' | 'wait' | 'request' | 'barging'>>;

/**
 * Pawl's own lock, driven by hand: the core decides, a store in memory commits, and the time is whatever the lesson says. In
 * seconds, since the lessons think in seconds.
 */
export class LabLock {
  readonly store: MemoryStore;
  /** How many waiters were woken. */
  wakesSent = 0;
  readonly #ttlS: number;
  readonly #ended = new Set<string>();
  #requests = 0;

  constructor(ttlS: number, store = new MemoryStore()) {
    this.#ttlS = ttlS;
    this.store = store;
    store.onEnded((ids) => {
      for (const id of ids) this.#ended.add(id);
    });
  }

  /** Opens a client's session, or keeps it alive. @returns false once it has ended. */
  keepAlive(client: string, nowS: number): boolean {
    const opened = this.store.keepAlive([client], nowS * 1000).size > 0;
    return opened || this.store.openSession(client, this.#ttlS * 1000, nowS * 1000);
  }

  /** One attempt to acquire the lock. @returns the token, or `null` where it is held by another. */
  acquire(client: string, nowS: number, ask: LabAsk = {}): Token | null {
    return this.acquireAll(client, nowS, ask)?.[0]?.token ?? null;
  }

  /** @returns the grants, or `null` where the client was not let in. */
  acquireAll(
    client: string,
    nowS: number,
    ask: LabAsk = {},
  ): readonly { slot: number; token: Token }[] | null {
    this.store.openSession(client, this.#ttlS * 1000, nowS * 1000);
    this.#buryEnded(nowS);
    const { outcome, version } = this.#run(
      {
        kind: 'acquire',
        session: client,
        request: ask.request ?? `${this.#requests++}`,
        locks: ask.locks ?? [{ name: 'lock', mode: 'exclusive', permits: null }],
        wait: ask.wait ?? false,
        owner: {},
        inbox: 'lab',
        lockDelayMs: 0,
        barging: ask.barging ?? false,
      },
      nowS,
    );
    if (outcome.kind !== 'granted') return null;
    return outcome.grants.map(({ slot, token }) => ({ slot, token: token ?? version }));
  }

  /** Gives back what a request holds. @returns whether it held it. */
  release(client: string, request: string, nowS: number, forget = false): boolean {
    const key = requestKey(client, request);
    const entry = this.store.read({ keys: [key], ranges: [] }).entries.get(key);
    const names =
      entry === undefined ? ['lock'] : decodeRequest(key, entry.value).locks.map((lock) => lock.name);
    const tokens = names.map(
      (name) => this.#lock(name).record?.holders.find((h) => h.request === request)?.token ?? 1n,
    );
    const { outcome } = this.#run({ kind: 'release', session: client, request, names, tokens, forget }, nowS);
    return outcome.kind === 'released';
  }

  /** Who holds the lock now. */
  holders(nowS: number, name = 'lock'): readonly string[] {
    this.#buryEnded(nowS);
    return (this.#lock(name).record?.holders ?? []).map((holder) => holder.session);
  }

  #buryEnded(nowS: number): void {
    this.store.expire(nowS * 1000);
    for (const session of this.store.endedSessions()) {
      this.#ended.add(session);
      for (const { key, value } of this.store.list(requestPrefix(session), 1000)) {
        const names = decodeRequest(key, value).locks.map((lock) => lock.name);
        this.#run({ kind: 'bury', session, request: requestOfKey(key), names, ghost: null }, nowS);
      }
    }
  }

  #run<C extends Command>(command: C, nowS: number): { outcome: OutcomeOf<C>; version: Version } {
    const locks = new Map(namesOf(command).map((name) => [name, this.#lock(name)]));
    const requests = new Map(
      requestsOf(command).map((id) => {
        const key = requestKey(id.session, id.request);
        return [key, this.#request(key)];
      }),
    );
    const { write, outcomes } = decide({ locks, requests }, [command], {
      ended: this.#ended,
      maxWaiters: 1000,
    });
    const result = write === null ? undefined : this.store.commit(write, nowS * 1000);
    this.wakesSent += write?.wakes.length ?? 0;
    const version = result?.kind === 'committed' ? result.version : 0n;
    // The core answers each kind of command with its kind of outcome.
    return { outcome: outcomes[0] as OutcomeOf<C>, version };
  }

  #lock(name: string): LoadedLock {
    const entry = this.store.read({ keys: [lockKey(name)], ranges: [] }).entries.get(lockKey(name));
    const head = this.store.list(waitPrefix(name), 16).map(({ key, value }) => decodeWaiter(key, value));
    const record = entry === undefined ? null : decodeLock(entry.key, entry.value, entry.version);
    return { version: entry?.version ?? null, record, head };
  }

  #request(key: string): LoadedRequest {
    const entry = this.store.read({ keys: [key], ranges: [] }).entries.get(key);
    return {
      version: entry?.version ?? null,
      record: entry === undefined ? null : decodeRequest(key, entry.value),
    };
  }
}
