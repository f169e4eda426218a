import { nameOfKey, requestKey } from '../../packages/pawl/src/core/names.ts';
import { decodeLock, decodeWaiter, type Owner } from '../../packages/pawl/src/core/records.ts';
import { MemoryStore } from '../../packages/pawl/src/testing/index.ts';

/** A lock that was granted. */
export interface Granted {
  readonly lock: string;
  readonly token: bigint;
  readonly slot: number;
}

/**
 * What of one acquire was in the store in one session, as waiter, holder, or the ghost of one. An acquire whose session ends before it is answered begins
 * anew in another, while what the first asked for may be there still, or come late.
 */
export interface StoredAcquire {
  readonly session: string;
  readonly fromMs: number;
  /** `Infinity` while anything is left. */
  readonly untilMs: number;
  has(grant: Granted): boolean;
}

/** Somebody asked and gave up, all in one commit: the store has nothing of it, but others came to wait behind it. */
export interface Passage {
  readonly lock: string;
  readonly atMs: number;
}

type Write = Parameters<MemoryStore['commit']>[0];

/** A store that remembers what of each acquire was in it, and from when to when. By the name that its owner has as `asked`. */
export class WatchedStore extends MemoryStore {
  readonly #acquires = new Map<string, Tracked[]>();
  /** Who is in the entries of locks and queues. */
  readonly #places = new Map<string, readonly Place[]>();
  /** The keys of the requests of all who were ever there. */
  readonly #known = new Set<string>();
  /** At all locks that such a commit looked at. */
  readonly passages: Passage[] = [];

  override commit(write: Write, nowMs: number): ReturnType<MemoryStore['commit']> {
    const result = super.commit(write, nowMs);
    if (result.kind === 'committed') this.#note(write, result.version, nowMs);
    return result;
  }

  /** In the order in which they came. */
  acquires(asked: string): readonly StoredAcquire[] {
    return this.#acquires.get(asked) ?? [];
  }

  #note({ guards, puts, deletes }: Write, version: bigint, nowMs: number): void {
    const values = new Map<string, string | undefined>(deletes.map((key) => [key, undefined]));
    for (const { key, value } of puts) values.set(key, value);
    const left = new Set<Tracked>();
    for (const [key, value] of values) {
      const before = this.#places.get(key) ?? [];
      for (const { of } of before) left.add(of.leave());
      const after = value === undefined ? [] : this.#placesIn(key, value, version, before, nowMs);
      for (const { of } of after) of.enter();
      if (after.length > 0) this.#places.set(key, after);
      else this.#places.delete(key);
    }
    for (const each of left) each.endIfGone(nowMs);
    if (![...values.keys()].some((key) => key.startsWith('req/') && !this.#known.has(key))) return;
    const locks = guards.filter(({ key }) => key.startsWith('lock/')).map(({ key }) => nameOfKey(key));
    this.passages.push(...locks.map((lock) => ({ lock, atMs: nowMs })));
  }

  #placesIn(
    key: string,
    value: string,
    version: bigint,
    before: readonly Place[],
    nowMs: number,
  ): readonly Place[] {
    if (key.startsWith('wait/')) {
      const { owner, session, request } = decodeWaiter(key, value);
      this.#known.add(requestKey(session, request));
      return this.#tracked(owner, session, nowMs).map((of) => ({ of }));
    }
    if (!key.startsWith('lock/')) return [];
    const name = nameOfKey(key);
    return decodeLock(key, value, version).holders.flatMap((holder) => {
      const { owner, session, request, token = 0n, slot, ghost } = holder;
      this.#known.add(requestKey(session, request));
      const grant = nameOf({ lock: name, token, slot });
      // A ghost has a session of its own, and is what is left of whom it stands in for.
      const haunting = ghost ? before.find((each) => each.grant === grant)?.of : undefined;
      const found = haunting === undefined ? this.#tracked(owner, session, nowMs) : [haunting];
      for (const of of found) of.grants.add(grant);
      return found.map((of) => ({ of, grant }));
    });
  }

  #tracked({ asked }: Owner, session: string, nowMs: number): Tracked[] {
    if (asked === undefined) return [];
    const all = this.#acquires.get(asked) ?? [];
    this.#acquires.set(asked, all);
    const present = all.find((each) => each.session === session && each.untilMs === Infinity);
    if (present !== undefined) return [present];
    const come = new Tracked(session, nowMs);
    all.push(come);
    return [come];
  }
}

interface Place {
  readonly of: Tracked;
  readonly grant?: string;
}

class Tracked implements StoredAcquire {
  readonly session: string;
  readonly fromMs: number;
  readonly grants = new Set<string>();
  untilMs = Infinity;
  #places = 0;

  constructor(session: string, fromMs: number) {
    this.session = session;
    this.fromMs = fromMs;
  }

  has(grant: Granted): boolean {
    return this.grants.has(nameOf(grant));
  }

  enter(): void {
    this.#places += 1;
  }

  leave(): this {
    this.#places -= 1;
    return this;
  }

  endIfGone(nowMs: number): void {
    if (this.#places === 0) this.untilMs = nowMs;
  }
}

/** No two grants in force have the same. */
function nameOf({ lock, token, slot }: Granted): string {
  return `${lock} ${token} ${slot}`;
}
