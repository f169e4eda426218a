import type { Mode } from '../core/records.ts';
import type { Token } from '../token.ts';
import type { Hold, HoldState } from './hold.ts';

/** What a lease does through the client that made it. */
export interface Keeper {
  release(hold: Hold): Promise<void>;
  export(hold: Hold): Promise<string>;
  /** This process's wall clock, ms since the epoch. */
  wallMs(): number;
}

/** What a lease and a set of leases have in common. */
abstract class Held implements AsyncDisposable {
  protected readonly hold: Hold;
  protected readonly keeper: Keeper;

  constructor(hold: Hold, keeper: Keeper) {
    this.hold = hold;
    this.keeper = keeper;
  }

  /**
   * Aborts when work under the lease has to stop: with `LeaseAtRiskError` if no renewal succeeded for half the TTL
   * (safe-stop, for good even if a later renewal succeeds), or with `LeaseLostError` if the lock is gone. Pass it on to whatever takes a signal.
   */
  get signal(): AbortSignal {
    return this.hold.signal;
  }

  get state(): HoldState {
    return this.hold.state;
  }

  /** Whether the lock is held as far as this process can know now. Like {@link assertHeld}, no fence. */
  get held(): boolean {
    const { state } = this;
    return state === 'held' || state === 'atRisk';
  }

  /** Time until the lease ends unless renewed, in ms; 0 once it is over. */
  get remainingMs(): number {
    return this.held ? this.hold.session.remainingMs : 0;
  }

  /** When the lease ends unless renewed, as ms since the epoch on this process's wall clock; moves on with every renewal. */
  get deadline(): number {
    return this.keeper.wallMs() + this.remainingMs;
  }

  /** The id that the acquire was made with; repeating the acquire with it yields this same grant. */
  get requestId(): string {
    return this.hold.requestId;
  }

  /**
   * Throws once the deadline passed or the lock was taken away. It fails safe: it throws too early rather than too late. But it
   * is no fence: this process may be paused between the check and the write, for longer than the lease lasts. Only the
   * resource can refuse such a write, by its token.
   *
   * @throws LeaseLostError, or NotHeldError after the release.
   */
  assertHeld(): void {
    this.hold.assertHeld();
  }

  /**
   * Gives the lock back. Resolves once the engine has it; repeats by itself while the engine cannot be reached.
   *
   * @throws NotHeldError if it was released before; LeaseLostError if the lease was lost, so that somebody else may have
   *   worked meanwhile; OutcomeUnknownError if the engine did not answer: the release goes on in the background.
   */
  release(): Promise<void> {
    return this.keeper.release(this.hold);
  }

  /** Releases it at the end of an `await using` block; silent if it was released or lost before (the signal told). */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.held) await this.keeper.release(this.hold);
  }
}

/**
 * What a client has after a grant. The lock may be lost at any moment: the process may be paused, or cut off, for longer
 * than the lease lasts. So stop on {@link signal}, and give {@link token} to the resource, which refuses lower ones.
 */
export class Lease extends Held {
  get name(): string {
    return this.hold.first.name;
  }

  /** The fencing token: higher than that of every earlier grant of this lock (of a semaphore: of this slot). */
  get token(): Token {
    return this.hold.first.token;
  }

  /** The token and what it is for, signed, where whoever granted it signs: a fence that knows the key believes nothing else. */
  get sequencer(): string | undefined {
    return this.hold.first.sequencer;
  }

  /** Of a semaphore, which permit; each slot has its own sequence of tokens, so fence it as a resource of its own. */
  get slot(): number {
    return this.hold.first.slot;
  }

  get mode(): Mode {
    return this.hold.first.mode;
  }

  /**
   * Hands the lease to another process: returns a text that `pawl.resume` takes there, token kept. From now on nobody
   * renews it, so resume it within its TTL; this lease is over. The text is as good as the lease itself: keep it secret.
   *
   * @throws as {@link release}
   */
  export(): Promise<string> {
    return this.keeper.export(this.hold);
  }
}

/** Several locks granted at once; they live and end together. If one is lost, all are. */
export class LeaseSet extends Held {
  /** The token of each lock, by name. */
  get tokens(): ReadonlyMap<string, Token> {
    return new Map(this.hold.grants.map(({ name, token }) => [name, token]));
  }

  get names(): readonly string[] {
    return this.hold.grants.map(({ name }) => name);
  }
}
