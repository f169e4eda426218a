import type { Clock } from '../../clock.ts';
import { EngineUnavailableError, LeaseLostError, NotHeldError } from '../../errors.ts';
import type { Token } from '../../token.ts';
import type { Instances } from './instances.ts';
import { EXTEND, RELEASE } from './scripts.ts';
import { Validity } from './validity.ts';

/** What was granted, and where. */
export interface RedlockGrant {
  readonly name: string;
  readonly token: Token;
  readonly ttlMs: number;
  readonly keys: readonly string[];
  /** The random value that stands in the instances for this grant. */
  readonly value: string;
  readonly validity: Validity;
}

/** Deletes `value` wherever it still stands. */
export function releaseEverywhere(instances: Instances, keys: readonly string[], value: string) {
  return instances.ask({ script: RELEASE, keys, args: [value], read: () => true, all: true });
}

/**
 * A lock held on a quorum. Nobody renews it: call {@link extend} in time. It may be lost at any moment, also without notice where
 * a Redis' clock steps, so give {@link token} to the resource, which refuses lower ones.
 */
export class RedlockLease implements AsyncDisposable {
  readonly #instances: Instances;
  readonly #clock: Clock;
  readonly #grant: RedlockGrant;
  #validity: Validity;
  #loss: LeaseLostError | undefined;
  #released = false;
  #release: Promise<void> | undefined;

  constructor(instances: Instances, clock: Clock, grant: RedlockGrant) {
    this.#instances = instances;
    this.#clock = clock;
    this.#grant = grant;
    this.#validity = grant.validity;
  }

  get name(): string {
    return this.#grant.name;
  }

  /** The fencing token: higher than that of every earlier grant, as long as no Redis loses its counter. */
  get token(): Token {
    return this.#grant.token;
  }

  /** Whether the lock is held as far as this process can know now. No fence. */
  get held(): boolean {
    return this.remainingMs > 0;
  }

  /** Time until the lease ends unless extended, in ms; 0 once it is over, and then for good. */
  get remainingMs(): number {
    if (this.#released || this.#loss !== undefined) return 0;
    const { remainingMs } = this.#validity;
    if (remainingMs === 0) this.#lose('its validity is over');
    return remainingMs;
  }

  /** When the lease ends unless extended, as ms since the epoch on this process's wall clock. */
  get deadline(): number {
    return this.#clock.wallMs() + this.remainingMs;
  }

  /**
   * Throws once the validity is over. It is no fence: this process may be paused between the check and the write.
   *
   * @throws LeaseLostError, or NotHeldError after the release.
   */
  assertHeld(): void {
    if (this.held) return;
    throw this.#loss ?? new NotHeldError(this.name, 'the lease was released');
  }

  /**
   * Begins the TTL anew on a quorum.
   *
   * @returns the new validity in ms, counted from before the request was sent.
   * @throws LeaseLostError if the validity was over before a quorum had extended it, or if too many instances have forgotten it;
   *   NotHeldError after the release; EngineUnavailableError if too few answered: then it lasts as long as it did before.
   */
  async extend(): Promise<number> {
    this.assertHeld();
    const { keys, value, ttlMs } = this.#grant;
    const validity = new Validity(this.#clock, ttlMs);
    const votes = await this.#instances.ask({
      script: EXTEND,
      keys,
      args: [value, ttlMs],
      read: (answer) => (answer === 1 ? true : undefined),
    });
    this.assertHeld();
    const { yes, no } = votes;
    if (this.#instances.agreed(yes.length)) {
      // Another extension that was sent later may have been answered earlier.
      if (validity.remainingMs > this.#validity.remainingMs) this.#validity = validity;
      return this.remainingMs;
    }
    if (!this.#instances.refused(yes.length, no)) throw this.#instances.unavailable(votes, 'indefinite');
    throw this.#lose(`${no} of ${this.#instances.count} Redis do not have it any more`);
  }

  /**
   * Gives the lock back on every instance that still has it for this grant; never touches another's. To repeat it does nothing,
   * unless it failed. A lease that was lost may be released too; {@link assertHeld} tells that it was.
   *
   * @throws EngineUnavailableError if less than a quorum answered; what is left there ends with the TTL.
   */
  release(): Promise<void> {
    // A validity that was over before is a loss, and stays one.
    if (this.held) this.#released = true;
    this.#release ??= this.#giveBack();
    return this.#release;
  }

  /** Releases it at the end of an `await using` block; silent where a quorum cannot be reached, since the TTL ends it then. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release();
    } catch (error) {
      if (!(error instanceof EngineUnavailableError)) throw error;
    }
  }

  async #giveBack(): Promise<void> {
    const votes = await releaseEverywhere(this.#instances, this.#grant.keys, this.#grant.value);
    if (this.#instances.agreed(votes.yes.length)) return;
    this.#release = undefined;
    throw this.#instances.unavailable(votes, 'indefinite');
  }

  #lose(reason: string): LeaseLostError {
    this.#loss ??= new LeaseLostError(this.name, this.token, reason);
    return this.#loss;
  }
}
