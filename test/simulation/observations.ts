import { AcquireTimeoutError, EngineUnavailableError, HeldError } from '../../packages/pawl/src/errors.ts';
import type { AcquireOperation, Operation, SimulatedTime } from '../../packages/pawl/src/testing/index.ts';

/** What is asked for, beside the locks. */
export type About = Pick<AcquireOperation, 'mode' | 'permits' | 'waits' | 'barging'>;

/** A lock that was granted. */
export interface Granted {
  readonly lock: string;
  readonly token: bigint;
  readonly slot: number;
}

/** The acquires of which anything, a waiter or a holder, is in the store, by the names that their owners have there. */
export type Stored = () => ReadonlySet<string>;

/** One acquire, as whoever asked goes on to see it. */
export class ObservedAcquire {
  /** For the owner of the acquire, by which it is found in the store. */
  readonly owner: { readonly asked: string };
  readonly #time: SimulatedTime;
  readonly #stored: Stored;
  readonly #locks: readonly string[];
  readonly #about: About;
  readonly #client: string;
  readonly #calledAtMs: number;
  #answeredAtMs = Infinity;
  #grants: readonly Granted[] = [];
  #error: unknown;
  /** It was in the store at some time: from when it is there no more, it is over. */
  #wasStored = false;
  #goneAtMs = Infinity;
  #heldUntilMs = 0;
  #releaseCalledAtMs = 0;
  #releasedAtMs: number | undefined;

  constructor(
    name: string,
    time: SimulatedTime,
    stored: Stored,
    client: string,
    locks: readonly string[],
    about: About,
  ) {
    this.owner = { asked: name };
    this.#time = time;
    this.#stored = stored;
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
      this.#wasStored = true;
      return lease;
    } catch (error) {
      this.#error = error;
      // Only who stood in the queue is told that the time is over.
      this.#wasStored ||= error instanceof AcquireTimeoutError;
      throw error;
    } finally {
      this.#answeredAtMs = this.#time.nowMs;
      this.#heldUntilMs = this.#time.nowMs;
      this.look(this.#stored());
      // If it was asked for, it was in a session that has ended: what is not in the store does not come any more.
      const failed = this.#error instanceof EngineUnavailableError && this.#error.outcome === 'definite';
      if (failed && !this.#wasStored) this.#goneAtMs = this.#answeredAtMs;
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

  /** Looks whether anything of it is left. */
  look(stored: ReadonlySet<string>): void {
    if (this.#goneAtMs < Infinity) return;
    if (stored.has(this.owner.asked)) this.#wasStored = true;
    else if (this.#wasStored) this.#goneAtMs = this.#time.nowMs;
  }

  operations(): Operation[] {
    if (this.#grants.length > 0)
      return [...this.#grants.map((grant) => this.#acquire(grant.lock, grant)), ...this.#ending()];
    const error = this.#error;
    // Who began anew in another session may have been refused because of what the first still held.
    if (error instanceof HeldError && !this.#wasStored) return [this.#acquire(error.lock, 'refused')];
    if (error instanceof AcquireTimeoutError) {
      const leftAtMs = Math.max(this.#goneAtMs, this.#answeredAtMs);
      return this.#locks.map((lock) => ({ ...this.#acquire(lock, 'refused'), leftAtMs }));
    }
    // What came of it, and how long it lasted, nobody was told.
    return [...this.#locks.map((lock) => this.#acquire(lock, 'unknown')), this.#end(this.#calledAtMs)];
  }

  #acquire(lock: string, answer: Granted | 'refused' | 'unknown'): AcquireOperation {
    const { permits } = this.#about;
    const several = this.#locks.length > 1;
    const times = {
      client: this.#client,
      calledAtMs: this.#calledAtMs,
      returnedAtMs: answer === 'unknown' ? this.#goneAtMs : this.#answeredAtMs,
    };
    const asked = {
      kind: 'acquire',
      lock,
      session: this.#session,
      ...this.#about,
      several,
      ...times,
    } as const;
    if (typeof answer === 'string') return { ...asked, reply: answer };
    return { ...asked, reply: answer.token, ...(permits === undefined ? {} : { slot: answer.slot }) };
  }

  #ending(): Operation[] {
    const released = this.#releasedAtMs;
    if (released === undefined) return [this.#end(this.#heldUntilMs)];
    const times = { client: this.#client, calledAtMs: this.#releaseCalledAtMs, returnedAtMs: released };
    return this.#grants.map(({ lock, token, slot }) => {
      const which = this.#about.permits === undefined ? {} : { slot };
      return { kind: 'release', lock, session: this.#session, token, ...which, reply: 'released', ...times };
    });
  }

  #end(calledAtMs: number): Operation {
    const returnedAtMs = Math.max(calledAtMs, this.#goneAtMs);
    return { kind: 'end', session: this.#session, client: this.#client, calledAtMs, returnedAtMs };
  }

  /** Each acquire counts as a session: clients see no more of theirs. */
  get #session(): string {
    return `acquire ${this.owner.asked}`;
  }
}

/** What clients were answered, with times, to be judged at the end. */
export class Observations {
  readonly #time: SimulatedTime;
  readonly #stored: Stored;
  readonly #acquires: ObservedAcquire[] = [];
  readonly #fenced: Operation[] = [];

  constructor(time: SimulatedTime, stored: Stored) {
    this.#time = time;
    this.#stored = stored;
  }

  /** An acquire that is about to be asked for. */
  asked(client: string, locks: readonly string[], about: About): ObservedAcquire {
    const name = String(this.#acquires.length);
    const acquire = new ObservedAcquire(name, this.#time, this.#stored, client, locks, about);
    this.#acquires.push(acquire);
    return acquire;
  }

  /** What a fence has just answered. */
  fenced(kind: 'write' | 'raise', resource: string, token: bigint, reply: 'accepted' | 'refused'): void {
    const nowMs = this.#time.nowMs;
    const times = { client: `whoever has ${token}`, calledAtMs: nowMs, returnedAtMs: nowMs };
    this.#fenced.push({ kind, resource, token, reply, ...times });
  }

  /** Looks which of them are over. */
  look(): void {
    const stored = this.#stored();
    for (const acquire of this.#acquires) acquire.look(stored);
  }

  operations(): Operation[] {
    return [...this.#acquires.flatMap((acquire) => acquire.operations()), ...this.#fenced];
  }
}
