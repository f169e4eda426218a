import { LeaseAtRiskError, LeaseLostError, NotHeldError, type PawlError } from '../errors.ts';
import type { GrantedLock } from '../node/service.ts';
import type { Moment } from './deadline.ts';
import type { ClientSession } from './session.ts';

/**
 * `held`: in force. `atRisk`: in force, but its signal was aborted. `releasing`: on its way back. The others are final.
 */
export type HoldState = 'held' | 'atRisk' | 'releasing' | 'released' | 'exported' | 'lost';

/** What one acquire was granted: one lock or several, which live and end together. */
export class Hold {
  readonly session: ClientSession;
  readonly requestId: string;
  readonly grants: readonly GrantedLock[];
  /** Whether the request id was made up, so that nobody can repeat it and nothing needs to remember it. */
  readonly forget: boolean;
  readonly since: Moment;
  /** Made for whoever looks at the signal: most leases are released without. */
  #abort: AbortController | undefined;
  #abortReason: PawlError | undefined;
  #state: HoldState = 'held';
  #loss: LeaseLostError | undefined;

  constructor(
    session: ClientSession,
    request: { readonly id: string; readonly forget: boolean },
    grants: readonly GrantedLock[],
    since: Moment,
  ) {
    this.session = session;
    this.requestId = request.id;
    this.forget = request.forget;
    this.grants = grants;
    this.since = since;
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#abortReason !== undefined) this.#abort.abort(this.#abortReason);
    }
    return this.#abort.signal;
  }

  /** The state as of now: a deadline that passed makes it `lost`, whether or not a timer has noticed yet. */
  get state(): HoldState {
    if (this.inForce) this.session.checkDeadline();
    return this.#state;
  }

  /** Whether the lock is still ours as far as was noticed. */
  get inForce(): boolean {
    return this.#state === 'held' || this.#state === 'atRisk' || this.#state === 'releasing';
  }

  /** Whether its release or export is under way. */
  get isLeaving(): boolean {
    return this.#state === 'releasing';
  }

  get first(): GrantedLock {
    const [first] = this.grants;
    if (first === undefined) throw new NotHeldError('', 'it was granted no lock');
    return first;
  }

  /** @throws LeaseLostError once the deadline passed or the lock was taken away, NotHeldError after its release. */
  assertHeld(): void {
    const { state } = this;
    if (state === 'held' || state === 'atRisk') return;
    throw (
      this.#loss ??
      new NotHeldError(this.first.name, `the lease was ${state === 'releasing' ? 'released' : state}`)
    );
  }

  /** Safe-stop (C3). */
  endangered(sinceMs: number, cause: unknown): LeaseAtRiskError | undefined {
    if (this.#state !== 'held') return undefined;
    this.#state = 'atRisk';
    const { name, token } = this.first;
    const error = new LeaseAtRiskError(name, token, sinceMs, this.session.ttlMs, { cause });
    this.#stop(error);
    return error;
  }

  /** The end nobody wished for. The state is final before anybody hears of it. */
  lost(reason: string, cause?: unknown): LeaseLostError | undefined {
    if (!this.inForce) return undefined;
    this.#state = 'lost';
    const { name, token } = this.first;
    this.#loss = new LeaseLostError(name, token, reason, { cause });
    this.#stop(this.#loss);
    return this.#loss;
  }

  /** @throws LeaseLostError, NotHeldError: only a hold in force can be given back, and only once. */
  startRelease(): void {
    this.assertHeld();
    this.#state = 'releasing';
  }

  /** The end that was wished for; with `reason`, work still under it is told to stop. */
  ended(state: 'released' | 'exported', reason?: PawlError): void {
    if (this.#state === 'lost') return;
    this.#state = state;
    if (reason !== undefined) this.#stop(reason);
  }

  /** Why it was lost, if it was. */
  get loss(): LeaseLostError | undefined {
    return this.#loss;
  }

  /** Tells work under it to stop; the first reason stays. */
  #stop(reason: PawlError): void {
    this.#abortReason ??= reason;
    this.#abort?.abort(reason);
  }
}
