import type { Operation, SimulatedTime } from '../../packages/pawl/src/testing/index.ts';

/** One grant, as whoever has it goes on to see it. */
export class ObservedGrant {
  readonly #time: SimulatedTime;
  readonly #acquire: Extract<Operation, { kind: 'acquire' }> & { readonly reply: bigint };
  #heldUntilMs: number;
  #releaseCalledAtMs: number | undefined;
  #releasedAtMs: number | undefined;

  constructor(time: SimulatedTime, acquire: ObservedGrant['asked']) {
    this.#time = time;
    this.#acquire = acquire;
    this.#heldUntilMs = time.nowMs;
  }

  get asked(): Extract<Operation, { kind: 'acquire' }> & { readonly reply: bigint } {
    return this.#acquire;
  }

  /** It was found to be in force. */
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
    const { lock, session, client, reply: token } = this.#acquire;
    if (this.#releaseCalledAtMs !== undefined && this.#releasedAtMs !== undefined) {
      const times = { client, calledAtMs: this.#releaseCalledAtMs, returnedAtMs: this.#releasedAtMs };
      return [this.#acquire, { kind: 'release', lock, session, token, reply: 'released', ...times }];
    }
    const times = { client, calledAtMs: this.#heldUntilMs, returnedAtMs: Infinity };
    return [this.#acquire, { kind: 'end', session, ...times }];
  }
}

/** What clients were answered, with times, to be judged at the end. Each grant counts as a session: clients see no more of theirs. */
export class Observations {
  readonly #time: SimulatedTime;
  readonly #grants: ObservedGrant[] = [];
  readonly #fenced: Operation[] = [];

  constructor(time: SimulatedTime) {
    this.#time = time;
  }

  /** An exclusive grant that was just heard of: of a lock, or of a slot, which has a sequence of tokens of its own. */
  granted(lock: string, token: bigint, client: string, calledAtMs: number): ObservedGrant {
    const session = `grant ${this.#grants.length}`;
    const times = { client, calledAtMs, returnedAtMs: this.#time.nowMs };
    const grant = new ObservedGrant(this.#time, { kind: 'acquire', lock, session, reply: token, ...times });
    this.#grants.push(grant);
    return grant;
  }

  /** What a fence has just answered. */
  fenced(kind: 'write' | 'raise', resource: string, token: bigint, reply: 'accepted' | 'refused'): void {
    const nowMs = this.#time.nowMs;
    const times = { client: `whoever has ${token}`, calledAtMs: nowMs, returnedAtMs: nowMs };
    this.#fenced.push({ kind, resource, token, reply, ...times });
  }

  operations(): Operation[] {
    return [...this.#grants.flatMap((grant) => grant.operations()), ...this.#fenced];
  }
}
