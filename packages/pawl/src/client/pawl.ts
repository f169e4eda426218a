import { type Clock, sleep, systemClock } from '../clock.ts';
import type { AskedLock } from '../core/commands.ts';
import type { Mode } from '../core/records.ts';
import type { EngineGuarantees } from '../engines/engine.ts';
import { HeldError, InvalidArgumentError, NotHeldError, ReentrantAcquireError } from '../errors.ts';
import type { BreakTarget, LockService, LockState } from '../node/service.ts';
import { isToken } from '../token.ts';
import { type Campaign, type ElectSettings, elect, observe } from './election.ts';
import { Announcer, type PawlEventName, type PawlEvents } from './events.ts';
import type { Hold } from './hold.ts';
import { Lease, LeaseSet } from './lease.ts';
import { LeaseKeeper } from './lease-keeper.ts';
import {
  type AcquireSettings,
  type CheckedSettings,
  checkName,
  checkPermits,
  checkSettings,
  MOST_LOCKS,
} from './options.ts';
import { Scopes } from './scope.ts';
import { type PawlTracer, Tracing } from './tracing.ts';
import { type WatchSettings, watch } from './watching.ts';
import { type LockSettings, runUnder } from './with-lock.ts';

/** Between two attempts to stand for election, in ms. */
const CAMPAIGN_PAUSE_MS = 500;

/** One lock of an `acquireAll`. */
export interface LockAsk {
  readonly name: string;
  readonly mode?: Mode;
}

/** Which grant to break, why, and on whose word. */
export interface BreakSettings {
  /** The token of the grant that is meant, so that no newer holder is hit. */
  readonly token: bigint;
  /** Needed where several hold the lock under one token (shared mode) or the same number (a semaphore). */
  readonly slot?: number;
  /** Recorded and shown by `inspect`, as is `by`. 1 to 512 bytes. */
  readonly reason: string;
  readonly by?: string;
}

/** A counting semaphore: at most `permits` leases at once, each on a slot of its own. */
export interface Semaphore {
  readonly name: string;
  readonly permits: number;
  acquire(settings?: AcquireSettings): Promise<Lease>;
  tryAcquire(settings?: Omit<AcquireSettings, 'waitMs'>): Promise<Lease | null>;
  withPermit<T>(settings: LockSettings, work: (lease: Lease) => T): Promise<Awaited<T>>;
}

export interface PawlOptions {
  readonly clock?: Clock;
  /** Makes a span for each acquire; such as `trace.getTracer('pawl')` of `@opentelemetry/api`. */
  readonly tracer?: PawlTracer | undefined;
}

/** A client: acquires locks, keeps its leases alive, and tells when one is at risk or lost. Made by `open`. */
export class Pawl implements AsyncDisposable {
  /** What the engine promises. */
  readonly guarantees: EngineGuarantees;
  readonly #service: LockService;
  readonly #clock: Clock;
  readonly #announcer = new Announcer();
  readonly #scopes = new Scopes();
  readonly #keeper: LeaseKeeper;
  readonly #tracing: Tracing | undefined;

  constructor(service: LockService, options: PawlOptions = {}) {
    const { clock = systemClock, tracer } = options;
    if (tracer !== undefined && typeof tracer?.startSpan !== 'function') {
      throw new InvalidArgumentError('tracer', 'a tracer of @opentelemetry/api', tracer);
    }
    this.#tracing = tracer === undefined ? undefined : new Tracing(tracer, service);
    this.guarantees = service.guarantees;
    this.#service = service;
    this.#clock = clock;
    this.#keeper = new LeaseKeeper({ service, clock, announcer: this.#announcer });
  }

  /**
   * Acquires a lock, waiting until it is granted.
   *
   * The lease can be lost at any later moment; see {@link Lease}. Waits come first, served first.
   *
   * @param name 1 to 512 bytes of UTF-8, compared byte by byte.
   * @throws HeldError (`waitMs: 0` and held), AcquireTimeoutError, AcquireAbortedError, EngineUnavailableError (never to be
   *   read as "held"), OutcomeUnknownError, SessionEndedError (expired in the queue), QueueFullError, LockShapeError,
   *   ReentrantAcquireError, RequestFinishedError, RequestMismatchError, InvalidArgumentError, TtlTooShortError, ClosedError
   */
  acquire(name: string, settings: AcquireSettings = {}): Promise<Lease> {
    return this.#acquireOne(name, null, settings);
  }

  /** Makes one attempt. @returns `null` where the lock is held by another; throws as {@link acquire} for all else. */
  async tryAcquire(name: string, settings: Omit<AcquireSettings, 'waitMs'> = {}): Promise<Lease | null> {
    return nullIfHeld(this.#acquireOne(name, null, { ...settings, waitMs: 0 }));
  }

  /**
   * Runs `work` under the lock and releases it afterwards.
   *
   * @param settings as for {@link acquire}; with `reentrant: true`, a call inside the `work` of another on the same lock
   *   runs under that very lease instead of throwing ReentrantAcquireError.
   * @returns what `work` returns, if the lease lasted until then.
   * @throws what `work` throws; LeaseLostError if the lease was lost meanwhile, with the value or error of `work` as its cause.
   */
  withLock<T>(name: string, work: (lease: Lease) => T): Promise<Awaited<T>>;
  withLock<T>(name: string, settings: LockSettings, work: (lease: Lease) => T): Promise<Awaited<T>>;
  async withLock<T>(
    name: string,
    settingsOrWork: LockSettings | ((lease: Lease) => T),
    workOrNothing?: (lease: Lease) => T,
  ): Promise<Awaited<T>> {
    const [settings, work] =
      typeof settingsOrWork === 'function' ? [{}, settingsOrWork] : [settingsOrWork, workOrNothing];
    return this.#runUnder(name, null, settings, work);
  }

  /**
   * A counting semaphore.
   *
   * @param permits 1 to 1024; all who use the name at the same time must agree, else LockShapeError.
   */
  semaphore(name: string, permits: number): Semaphore {
    checkName(name);
    checkPermits(permits);
    return {
      name,
      permits,
      acquire: (settings = {}) => this.#acquireOne(name, permits, settings),
      tryAcquire: async (settings = {}) =>
        nullIfHeld(this.#acquireOne(name, permits, { ...settings, waitMs: 0 })),
      withPermit: (settings, work) => this.#runUnder(name, permits, settings, work),
    };
  }

  /**
   * Acquires several locks at once, all or nothing; cannot deadlock, in whatever order they are named.
   *
   * @param asks 1 to 64 names, or names with their modes; none twice.
   * @throws as {@link acquire}
   */
  async acquireAll(asks: readonly (string | LockAsk)[], settings: AcquireSettings = {}): Promise<LeaseSet> {
    const checked = checkSettings(settings, this.guarantees);
    if (!Array.isArray(asks) || asks.length === 0 || asks.length > MOST_LOCKS) {
      throw new InvalidArgumentError('asks', `a list of 1 to ${MOST_LOCKS} locks`, asks);
    }
    const locks = asks.map((ask): AskedLock => {
      const { name, mode = checked.mode } = typeof ask === 'string' ? { name: ask } : ask;
      this.#checkLock(name);
      if (mode !== 'exclusive' && mode !== 'shared')
        throw new InvalidArgumentError('mode', '"exclusive" or "shared"', mode);
      return { name, mode, permits: null };
    });
    if (new Set(locks.map((lock) => lock.name)).size < locks.length) {
      throw new InvalidArgumentError('asks', 'a list that names no lock twice', asks);
    }
    return new LeaseSet(await this.#hold(locks, checked), this.#keeper);
  }

  /**
   * Takes part in the election of a leader, again and again until elected; `lead` runs while this client leads. If the
   * lease is lost while it runs, its signal aborts, and the campaign starts anew once `lead` has ended. While the engine cannot
   * be reached the campaign goes on trying; the event `campaignFailed` tells.
   *
   * @returns what `lead` returns, which ends the leadership.
   * @throws what `lead` throws while the lease lasts; AcquireAbortedError once `settings.signal` aborts.
   */
  async elect<T>(name: string, settings: ElectSettings, lead: (lease: Lease) => T): Promise<Awaited<T>> {
    if (typeof lead !== 'function') throw new InvalidArgumentError('lead', 'a function', lead);
    const campaign: Campaign<T> = {
      acquire: (options) => this.acquire(name, options),
      lead: (lease) => runUnder(this.#scopes, lease, lead),
      pauseAfter: (error) => {
        this.#announcer.emit('campaignFailed', { name, error });
        return sleep(this.#clock, CAMPAIGN_PAUSE_MS);
      },
    };
    return elect(campaign, settings);
  }

  /** Follows who leads an election: yields the leader, or `null` for none, at once and whenever that changes. */
  observe(name: string, settings: WatchSettings = {}): ReturnType<typeof observe> {
    return observe(this.watch(name, settings));
  }

  /** The lock as it is now: holders, queue, and the last forced release. */
  async inspect(name: string): Promise<LockState> {
    checkName(name);
    return this.#service.inspect(name);
  }

  /** All locks in use whose name starts with `prefix` (all, unless set), in the order of their encoded names. */
  async *list(prefix = ''): AsyncGenerator<LockState, void, void> {
    if (prefix !== '') checkName(prefix, 'prefix');
    const pageSize = 500;
    let after: string | undefined;
    for (;;) {
      const page = await this.#service.list(prefix, pageSize, after);
      yield* page;
      if (page.length < pageSize) return;
      after = page.at(-1)?.name;
    }
  }

  /** Follows a lock: yields its state at once and whenever it changes. Ends when the signal aborts. */
  watch(name: string, settings: WatchSettings = {}): AsyncGenerator<LockState, void, void> {
    checkName(name);
    return watch(() => this.#service.inspect(name), this.#clock, settings);
  }

  /**
   * Takes a lock away from its holder, whose signal aborts with LeaseLostError. The holder may still be at work: only the
   * fence at the resource stops it, once it saw the next token.
   *
   * @throws NotHeldError where nobody holds the lock under that token.
   */
  async breakLock(name: string, settings: BreakSettings): Promise<void> {
    checkName(name);
    const { token, slot, reason, by = `process ${process.pid}` } = settings;
    if (!isToken(token))
      throw new InvalidArgumentError('token', 'the token (a bigint) of the grant to break', token);
    if (slot !== undefined && !Number.isSafeInteger(slot))
      throw new InvalidArgumentError('slot', 'a whole number', slot);
    checkName(reason, 'reason');
    checkName(by, 'by');
    const target: BreakTarget = { name, token, slot };
    const outcome = await this.#service.breakHold(target, reason, by);
    if (outcome.kind === 'notHeld') throw new NotHeldError(name, `nobody holds it under token ${token}`);
  }

  /** How many wait ahead of an acquire of this client that is in the queue, or `null` where it does not wait. */
  async position(name: string, requestId: string): Promise<number | null> {
    checkName(name);
    checkName(requestId, 'requestId');
    return this.#keeper.position(name, requestId);
  }

  /**
   * Takes over a lease that another process exported. It keeps its token.
   *
   * @throws NotHeldError where it is too late, or somebody else resumed it; LeaseLostError where it takes longer than the TTL, whether
   *   or not it happened (then it is given back); InvalidArgumentError
   */
  async resume(exported: string): Promise<Lease> {
    return new Lease(await this.#keeper.resume(exported), this.#keeper);
  }

  /** Calls `listener` on an event. One that throws disturbs nothing. @returns a function that stops it. */
  on<E extends PawlEventName>(event: E, listener: (event: PawlEvents[E]) => void): () => void {
    return this.#announcer.on(event, listener);
  }

  /** Gives back all leases, turns away whoever waits, and ends the sessions: nobody has to wait for an expiry. */
  async close(): Promise<void> {
    await this.#keeper.close();
    await this.#service.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #acquireOne(name: string, permits: number | null, settings: AcquireSettings): Promise<Lease> {
    const checked = checkSettings(settings, this.guarantees);
    this.#checkLock(name);
    if (permits !== null && checked.mode === 'shared') {
      throw new InvalidArgumentError('mode', '"exclusive" for a semaphore', checked.mode);
    }
    return new Lease(await this.#hold([{ name, mode: checked.mode, permits }], checked), this.#keeper);
  }

  #hold(locks: readonly AskedLock[], settings: CheckedSettings): Promise<Hold> {
    if (this.#tracing === undefined) return this.#keeper.acquire(locks, settings);
    return this.#tracing.acquire(locks, settings, (traced) => this.#keeper.acquire(locks, traced));
  }

  async #runUnder<T>(
    name: string,
    permits: number | null,
    settings: LockSettings,
    work: ((lease: Lease) => T) | undefined,
  ): Promise<Awaited<T>> {
    if (typeof work !== 'function') throw new InvalidArgumentError('work', 'a function', work);
    checkName(name);
    const surrounding = settings?.reentrant === true ? this.#scopes.find(name) : undefined;
    if (surrounding !== undefined) return await work(surrounding);
    const lease = await this.#acquireOne(name, permits, settings);
    return runUnder(this.#scopes, lease, work);
  }

  #checkLock(name: unknown): asserts name is string {
    checkName(name);
    if (this.#scopes.find(name) !== undefined) throw new ReentrantAcquireError(name);
  }
}

async function nullIfHeld(acquiring: Promise<Lease>): Promise<Lease | null> {
  try {
    return await acquiring;
  } catch (error) {
    if (error instanceof HeldError) return null;
    throw error;
  }
}
