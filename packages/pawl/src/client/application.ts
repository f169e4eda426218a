import type { Clock, Timer } from '../clock.ts';
import type { AskedLock } from '../core/commands.ts';
import {
  AcquireAbortedError,
  AcquireTimeoutError,
  EngineUnavailableError,
  HeldError,
  isPawlError,
  LockShapeError,
  OutcomeUnknownError,
  type PawlError,
  QueueFullError,
  RequestFinishedError,
  RequestMismatchError,
  SessionEndedError,
} from '../errors.ts';
import type { AcquireAnswer, GrantedLock, LockService, SessionEvent } from '../node/service.ts';
import type { Announcer } from './events.ts';
import type { CheckedSettings } from './options.ts';
import type { Applicant, ClientSession } from './session.ts';
import { settle, within } from './settle.ts';

/** So long an engine may take to say anything at all, in ms, before an acquire fails closed (L5). */
const ANSWER_LIMIT_MS = 10_000;
/** So long a failed acquire waits for its own clean-up, in ms, before that goes on in the background. */
const CLEANUP_PATIENCE_MS = 1000;
/** So often an acquire of unknown outcome is repeated before it is called unknown. */
const REPETITIONS = 3;
/** What a repetition comes to that there is no point in any more. */
const NOT_ASKED = Promise.resolve(undefined);

export interface ApplicationContext {
  readonly service: LockService;
  readonly clock: Clock;
  readonly announcer: Announcer;
}

/**
 * One acquire on its way: asks, waits for the grant, and gives up on time-out, abort or the end of its session. However it
 * fails, it cleans up behind itself (S6).
 */
export class Application implements Applicant {
  readonly requestId: string;
  readonly #context: ApplicationContext;
  readonly #session: ClientSession;
  readonly #locks: readonly AskedLock[];
  readonly #settings: CheckedSettings;
  readonly #forget: boolean;
  readonly #result = Promise.withResolvers<readonly GrantedLock[]>();
  readonly #timers: Timer[] = [];
  #queued = false;
  #over = false;
  #turnedAway: PawlError | undefined;
  /** Every acquire that was sent has been answered. */
  #answered = false;
  /** The node has said that there is neither a waiter nor a grant. */
  #leftNothing = false;
  #cleaning: Promise<void> | undefined;

  constructor(
    context: ApplicationContext,
    session: ClientSession,
    request: { readonly id: string; readonly forget: boolean },
    locks: readonly AskedLock[],
    settings: CheckedSettings,
  ) {
    this.#context = context;
    this.#session = session;
    this.requestId = request.id;
    this.#forget = request.forget;
    this.#locks = locks;
    this.#settings = settings;
  }

  /**
   * @param limitMs what is left of the time to wait; `undefined` for no limit.
   * @throws AcquireTimeoutError, AcquireAbortedError, HeldError, SessionEndedError, EngineUnavailableError,
   *   OutcomeUnknownError and what the node refuses: QueueFullError, LockShapeError, RequestMismatchError, RequestFinishedError
   */
  async run(limitMs: number | undefined): Promise<readonly GrantedLock[]> {
    const { signal, waitMs } = this.#settings;
    // Of what happened before, neither of them tells any more.
    if (signal?.aborted === true) throw new AcquireAbortedError(this.#name, signal.reason);
    if (this.#session.ended !== undefined) throw this.#session.ended;
    const onAbort = () => this.#fail(new AcquireAbortedError(this.#name, signal?.reason));
    signal?.addEventListener('abort', onAbort, { once: true });
    if (waitMs !== 0 && limitMs !== undefined) {
      this.#timers.push(this.#context.clock.setTimer(limitMs, () => this.#timeOut(waitMs ?? limitMs)));
    }
    this.#timers.push(this.#context.clock.setTimer(ANSWER_LIMIT_MS, () => this.#noAnswer()));
    this.#session.addApplicant(this);
    try {
      this.#ask();
      const grants = await this.#result.promise;
      this.#over = true;
      if (!this.#session.fresh) await this.#session.untilFresh();
      // Its grant was taken away before it could be handed out.
      if (this.#turnedAway !== undefined) throw this.#turnedAway;
      return grants;
    } catch (error) {
      this.#over = true;
      await this.#cleanUp();
      throw error;
    } finally {
      for (const timer of this.#timers) timer.cancel();
      signal?.removeEventListener('abort', onAbort);
      this.#session.removeApplicant(this);
    }
  }

  granted({ grants }: SessionEvent & { kind: 'granted' }): void {
    this.#result.resolve(grants);
  }

  turnedAway(error: PawlError): void {
    this.#turnedAway = error;
    this.#fail(error);
  }

  /** `null` also where it does not wait yet, or any more. */
  async position(name: string): Promise<number | null> {
    return this.#names.includes(name) ? this.#context.service.position(this.#id, name) : null;
  }

  /**
   * Whether the request may be forgotten once it is over: nobody else knows its id, and nothing that was sent for it can still be on
   * its way.
   */
  get forget(): boolean {
    return this.#forget && this.#answered;
  }

  /** Once it has failed: resolves when nothing is left of it, which may be long after. */
  get cleanUp(): Promise<void> | undefined {
    return this.#cleaning;
  }

  /** Whether it came to stand in a queue. */
  get queued(): boolean {
    return this.#queued;
  }

  get #names(): readonly string[] {
    return this.#locks.map((lock) => lock.name);
  }

  get #name(): string {
    return this.#locks[0]?.name ?? '';
  }

  get #id() {
    return { session: this.#session.id, request: this.requestId };
  }

  #ask(): void {
    const { owner, lockDelayMs, barging, waitMs } = this.#settings;
    const options = { wait: waitMs !== 0, owner, lockDelayMs, barging };
    let left = REPETITIONS;
    let unknown = false;
    // The grant may have come as news meanwhile, and have been given back: to ask once more would be a new acquire.
    const attempt = () =>
      this.#over ? NOT_ASKED : this.#context.service.acquire(this.#id, this.#locks, options);
    const settled = settle(attempt, {
      clock: this.#context.clock,
      // Only an unknown outcome is asked for again; an engine that surely did nothing fails the acquire at once (L5).
      goOn: (error) => {
        // What a first attempt left open, a second one that surely did nothing does not close.
        unknown ||= error.outcome === 'indefinite';
        return unknown && !this.#over && left-- > 0;
      },
    });
    settled.then(
      (answer) => this.#onAnswer(answer),
      (error) => this.#onNoAnswer(error, unknown),
    );
  }

  #onNoAnswer(error: unknown, unknown: boolean): void {
    // What is no error of ours, or a fault of a server, says nothing of what happened before it.
    const didNotHappen = !unknown && isPawlError(error) && error.outcome === 'definite';
    this.#answered = didNotHappen;
    this.#leftNothing = didNotHappen;
    this.#fail(
      unknown ? new OutcomeUnknownError(`the acquire of lock "${this.#name}"`, { cause: error }) : error,
    );
  }

  #onAnswer(answer: AcquireAnswer | undefined): void {
    this.#answered = true;
    if (answer === undefined) return;
    if (answer.kind === 'granted') this.#result.resolve(answer.grants);
    else if (answer.kind === 'queued') this.#onQueued(answer.ahead);
    else {
      this.#leftNothing = true;
      if (answer.kind === 'sessionEnded') this.#session.end('the engine ended it');
      this.#fail(refusal(answer, this.requestId));
    }
  }

  #onQueued(ahead: number): void {
    this.#queued = true;
    // Whoever waits wants the process to live that long, also without a limit.
    if (!this.#over) this.#timers.push(keepProcess(this.#context.clock));
    this.#settings.onQueued?.();
    if (this.#settings.waitMs === 0) this.#fail(new HeldError(this.#name));
    const { requestId } = this;
    for (const name of this.#names) this.#context.announcer.emit('queued', { name, requestId, ahead });
  }

  #fail(error: unknown): void {
    this.#result.reject(error);
  }

  #timeOut(waitedMs: number): void {
    if (this.#queued) this.#fail(new AcquireTimeoutError(this.#name, waitedMs));
    else this.#noAnswer(waitedMs);
  }

  /** Silence is no "held". */
  #noAnswer(waitedMs = ANSWER_LIMIT_MS): void {
    if (this.#queued) return;
    this.#fail(
      new EngineUnavailableError(
        `The engine has not answered the acquire of lock "${this.#name}" within ${waitedMs} ms. It is being cancelled.`,
        'indefinite',
      ),
    );
  }

  /** Leaves the queue, or gives the grant back; for as long as that takes, or until the session's end does it. */
  async #cleanUp(): Promise<void> {
    if (this.#leftNothing || this.#session.ended !== undefined) return;
    const { service, clock } = this.#context;
    const cleanUp = settle(() => service.cancel(this.#id, this.#names, this.forget), {
      clock,
      goOn: () => this.#session.ended === undefined,
    });
    this.#cleaning = cleanUp.then(ignore, ignore);
    await within(clock, CLEANUP_PATIENCE_MS, this.#cleaning);
  }
}

type Refusal = Exclude<AcquireAnswer, { kind: 'granted' | 'queued' }>;

function refusal(answer: Refusal, requestId: string): PawlError {
  switch (answer.kind) {
    case 'held':
      return new HeldError(answer.name);
    case 'queueFull':
      return new QueueFullError(answer.name, answer.limit);
    case 'shape':
      return new LockShapeError(answer.name, shapeName(answer.present), shapeName(answer.asked));
    case 'mismatch':
      return new RequestMismatchError(requestId);
    case 'finished':
      return new RequestFinishedError(requestId, answer.how);
    case 'sessionEnded':
      return new SessionEndedError('the engine ended it');
  }
}

function shapeName(permits: number | null): string {
  return permits === null ? 'a lock' : `a semaphore of ${permits}`;
}

function keepProcess(clock: Clock): Timer {
  return clock.setTimer(2 ** 40, () => {});
}

function ignore(): void {}
