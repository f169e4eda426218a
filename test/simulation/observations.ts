import { AcquireTimeoutError, HeldError } from '../../packages/pawl/src/errors.ts';
import type { AcquireOperation, Operation, SimulatedTime } from '../../packages/pawl/src/testing/index.ts';
import type { Granted, StoredAcquire, WatchedStore } from './stored-acquires.ts';

/** What is asked for, beside the locks. */
export type About = Pick<AcquireOperation, 'mode' | 'permits' | 'waits' | 'barging'>;

/** One acquire, as whoever asked goes on to see it. */
export class ObservedAcquire {
  /** For the owner of the acquire, by which it is found in the store. */
  readonly owner: { readonly asked: string };
  readonly #time: SimulatedTime;
  readonly #store: WatchedStore;
  readonly #locks: readonly string[];
  readonly #about: About;
  readonly #client: string;
  readonly #calledAtMs: number;
  #answeredAtMs = Infinity;
  #grants: readonly Granted[] = [];
  #error: unknown;
  #heldUntilMs = 0;
  #releaseCalledAtMs = 0;
  #releasedAtMs: number | undefined;

  constructor(
    name: string,
    time: SimulatedTime,
    store: WatchedStore,
    client: string,
    locks: readonly string[],
    about: About,
  ) {
    this.owner = { asked: name };
    this.#time = time;
    this.#store = store;
    this.#client = client;
    this.#locks = locks;
    this.#about = about;
    this.#calledAtMs = time.nowMs;
  }

  /** Observes what comes of it. */
  async answered<L>(acquiring: Promise<L>, grantsOf: (lease: L) => readonly Granted[]): Promise<L> {
    try {
      const lease = await acquiring;
      this.#grants = grantsOf(lease);
      return lease;
    } catch (error) {
      this.#error = error;
      throw error;
    } finally {
      this.#answeredAtMs = this.#time.nowMs;
      this.#heldUntilMs = this.#time.nowMs;
    }
  }

  /** The grant was found to be in force. */
  held(): void {
    this.#heldUntilMs = this.#time.nowMs;
  }

  /** Observes the release; one that fails leaves open when the hold ended. */
  async release(release: () => Promise<void>): Promise<void> {
    this.#releaseCalledAtMs = this.#time.nowMs;
    await release();
    this.#releasedAtMs = this.#time.nowMs;
  }

  operations(): Operation[] {
    const stored = this.#store.acquires(this.owner.asked);
    if (this.#grants.length > 0) {
      const own = stored.find((each) => this.#grants.every((grant) => each.has(grant)));
      const others = stored.filter((each) => each !== own);
      const grants = this.#grants.map((grant) => this.#granted(grant));
      return [...grants, ...this.#ending(own?.untilMs ?? Infinity), ...this.#unseen(others)];
    }
    const error = this.#error;
    if (error instanceof HeldError) return [this.#refused(error.lock), ...this.#unseen(stored)];
    if (!(error instanceof AcquireTimeoutError)) return this.#unseen(stored);
    const leftAtMs = Math.max(this.#answeredAtMs, ...stored.map(({ untilMs }) => untilMs));
    const refused = this.#locks.map((lock) => ({ ...this.#refused(lock), leftAtMs }));
    // Of one that began anew nobody knows which it was that waited in vain.
    return [...refused, ...(stored.length > 1 ? this.#unseen(stored) : [])];
  }

  #granted({ lock, token, slot }: Granted): Operation {
    return { ...this.#refused(lock), reply: token, ...(this.#about.permits === undefined ? {} : { slot }) };
  }

  #refused(lock: string): AcquireOperation {
    return { ...this.#asked(lock), ...this.#times(this.#calledAtMs, this.#answeredAtMs), reply: 'refused' };
  }

  #asked(lock: string) {
    const several = this.#locks.length > 1;
    return { kind: 'acquire', lock, session: this.#session, ...this.#about, several } as const;
  }

  #ending(goneAtMs: number): Operation[] {
    const released = this.#releasedAtMs;
    const session = this.#session;
    if (released === undefined) {
      const times = this.#times(this.#heldUntilMs, Math.max(this.#heldUntilMs, goneAtMs));
      return [{ kind: 'end', session, ...times }];
    }
    const times = this.#times(this.#releaseCalledAtMs, released);
    return this.#grants.map(({ lock, token, slot }) => {
      const which = this.#about.permits === undefined ? {} : { slot };
      return { kind: 'release', lock, session, token, ...which, reply: 'released', ...times };
    });
  }

  /** What it had in the store without an answer: what came of that, and for how long, nobody was told. */
  #unseen(stored: readonly StoredAcquire[]): Operation[] {
    return stored.flatMap(({ session: inside, fromMs, untilMs }): Operation[] => {
      const session = `${this.#session} in ${inside} from ${fromMs}`;
      const times = this.#times(fromMs, untilMs);
      const acquires = this.#locks.map((lock) => ({ ...this.#asked(lock), session, ...times }));
      return [
        ...acquires.map((each): Operation => ({ ...each, reply: 'unknown' })),
        { kind: 'end', session, ...times },
      ];
    });
  }

  #times(calledAtMs: number, returnedAtMs: number) {
    return { client: this.#client, calledAtMs, returnedAtMs };
  }

  /** Each acquire counts as a session: clients see no more of theirs. */
  get #session(): string {
    return `acquire ${this.owner.asked}`;
  }
}

/** What clients were answered, with times, to be judged at the end. */
export class Observations {
  readonly #time: SimulatedTime;
  readonly #store: WatchedStore;
  readonly #acquires: ObservedAcquire[] = [];
  readonly #permits = new Map<string, number | undefined>();
  readonly #fenced: Operation[] = [];

  constructor(time: SimulatedTime, store: WatchedStore) {
    this.#time = time;
    this.#store = store;
  }

  /** An acquire that is about to be asked for. */
  asked(client: string, locks: readonly string[], about: About): ObservedAcquire {
    const name = String(this.#acquires.length);
    const acquire = new ObservedAcquire(name, this.#time, this.#store, client, locks, about);
    this.#acquires.push(acquire);
    for (const lock of locks) this.#permits.set(lock, about.permits);
    return acquire;
  }

  /** What a fence has just answered. */
  fenced(kind: 'write' | 'raise', resource: string, token: bigint, reply: 'accepted' | 'refused'): void {
    const nowMs = this.#time.nowMs;
    const times = { client: `whoever has ${token}`, calledAtMs: nowMs, returnedAtMs: nowMs };
    this.#fenced.push({ kind, resource, token, reply, ...times });
  }

  operations(): Operation[] {
    const asked = this.#acquires.flatMap((acquire) => acquire.operations());
    return [...asked, ...this.#passages(), ...this.#fenced];
  }

  /** Whoever came and went at one moment was in the way of those who asked just then. */
  #passages(): Operation[] {
    return this.#store.passages.flatMap(({ lock, atMs }, i): Operation[] => {
      const permits = this.#permits.get(lock);
      const about = { lock, ...(permits === undefined ? {} : { permits }), waits: true, several: true };
      const session = `passage ${i}`;
      const times = { client: 'somebody who gave up', calledAtMs: atMs, returnedAtMs: atMs };
      return [
        { kind: 'acquire', ...about, session, reply: 'unknown', ...times },
        { kind: 'end', session, ...times },
      ];
    });
  }
}
