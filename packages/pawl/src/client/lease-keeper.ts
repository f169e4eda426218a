import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { AskedLock } from '../core/commands.ts';
import {
  AcquireAbortedError,
  ClosedError,
  EngineUnavailableError,
  InvalidArgumentError,
  LeaseLostError,
  OutcomeUnknownError,
  type PawlError,
  SessionEndedError,
} from '../errors.ts';
import type { GrantedLock, LockService } from '../node/service.ts';
import { Application } from './application.ts';
import { elapsedMs, type Moment, now } from './deadline.ts';
import type { Announcer } from './events.ts';
import { readHandover, writeHandover } from './handover.ts';
import { Hold } from './hold.ts';
import type { Keeper } from './lease.ts';
import { type CheckedSettings, checkSettings } from './options.ts';
import { releaseHappened } from './remote/aftermath.ts';
import { Resumption } from './resumption.ts';
import type { ClientSession } from './session.ts';
import { Sessions } from './sessions.ts';
import { settle, within } from './settle.ts';

/** So long a release waits for the engine, in ms, before it goes on in the background. */
const RELEASE_PATIENCE_MS = 5000;
/** So long an engine may take to open a session or to clean up after an earlier attempt, in ms. */
const ENGINE_LIMIT_MS = 10_000;
/** So often an acquire starts anew because its session turned out to have ended before it began. */
const FRESH_STARTS = 3;

export interface KeeperContext {
  readonly service: LockService;
  readonly clock: Clock;
  readonly announcer: Announcer;
}

/** Makes, keeps and ends what a client holds. */
export class LeaseKeeper implements Keeper {
  readonly #context: KeeperContext;
  readonly #sessions: Sessions;
  /** Requests that failed and are still being cleaned up after, by the ids that their callers gave them. */
  readonly #cleanUps = new Map<string, Promise<void>>();
  /** How many acquires wait for a session to open: whoever comes later stays behind them. */
  #awaiting = 0;
  #closed = false;

  constructor(context: KeeperContext) {
    this.#context = context;
    this.#sessions = new Sessions(context);
  }

  wallMs(): number {
    return this.#context.clock.wallMs();
  }

  async acquire(locks: readonly AskedLock[], settings: CheckedSettings): Promise<Hold> {
    const { signal, waitMs, requestId } = settings;
    const name = locks[0]?.name ?? '';
    if (signal?.aborted === true) throw new AcquireAbortedError(name, signal.reason);
    const request = { id: requestId ?? randomUUID(), forget: requestId === undefined };
    const startedAt = now(this.#context.clock);
    const leftMs = () =>
      waitMs === undefined ? undefined : Math.max(0, waitMs - elapsedMs(this.#context.clock, startedAt));

    // Repeated while its first attempt is still being taken back, it would get a grant that is about to go.
    const cleanUp = requestId === undefined ? undefined : this.#cleanUps.get(requestId);
    if (cleanUp !== undefined && (await this.#whilePatient(cleanUp, settings, name, leftMs())) === undefined)
      throw new OutcomeUnknownError(`an earlier acquire of lock "${name}" with the same request id`);

    for (let starts = 1; ; starts += 1) {
      const session = this.#openSession(settings.ttlMs) ?? (await this.#session(settings, name, leftMs));
      if (session.applicant(request.id) !== undefined) {
        throw new InvalidArgumentError('requestId', 'an id that no acquire under way has', request.id);
      }
      const application = new Application(this.#context, session, request, locks, settings);
      try {
        const grants = await application.run(leftMs());
        if (session.ended !== undefined) throw session.ended;
        const { forget } = application;
        const known = requestId === undefined ? undefined : holdOf(session, requestId);
        return known ?? this.#hold(session, { id: request.id, forget }, grants, startedAt);
      } catch (error) {
        const stale = error instanceof SessionEndedError && !application.queued && starts < FRESH_STARTS;
        if (!stale) throw error;
      } finally {
        if (!request.forget && application.cleanUp !== undefined)
          this.#rememberCleanUp(request.id, application.cleanUp);
      }
    }
  }

  async release(hold: Hold): Promise<void> {
    hold.startRelease();
    const releasing = this.#giveBack(hold);
    // Repeated meanwhile, its acquire would get a grant that is about to go.
    if (!hold.forget) this.#rememberCleanUp(hold.requestId, releasing.then(ignore, ignore));
    let done: object | undefined;
    let cause: unknown;
    try {
      done = await within(this.#context.clock, RELEASE_PATIENCE_MS, releasing);
    } catch (error) {
      cause = error;
    }
    if (hold.loss !== undefined) throw hold.loss;
    if (done === undefined)
      throw new OutcomeUnknownError(`the release of lock "${hold.first.name}"`, { cause });
  }

  async export(hold: Hold): Promise<string> {
    hold.assertHeld();
    const { session, requestId, grants, first } = hold;
    const { service, clock } = this.#context;
    const { ttlMs } = session;
    const heir = await service.openSession(ttlMs);
    hold.startRelease();
    const from = { session: session.id, request: requestId };
    const to = { session: heir, request: requestId };
    const { owner } = checkSettings({ ttlMs }, service.guarantees);
    try {
      const answer = await settle(() => service.transfer(from, grants, to, owner, hold.forget), {
        clock,
        goOn: () => session.ended === undefined,
      });
      if (answer.kind === 'notHeld') hold.lost('the engine says that it is not held');
    } catch (error) {
      hold.lost('its export came to an unknown end', error);
      // It may have come to nothing, and whoever has lost it does not give it back.
      const names = grants.map((grant) => grant.name);
      const goOn = () => session.ended === undefined;
      settle(() => service.cancel(from, names, false), { clock, goOn }).catch(ignore);
    }
    session.removeHold(hold);
    if (hold.loss !== undefined) throw hold.loss;
    hold.ended('exported');
    return writeHandover({ name: first.name, token: first.token, session: heir, request: requestId, ttlMs });
  }

  async resume(exported: unknown): Promise<Hold> {
    const handover = readHandover(exported);
    const settings = checkSettings({ ttlMs: handover.ttlMs }, this.#context.service.guarantees);
    const session = await this.#session(settings, handover.name, noLimit);
    const resumption = new Resumption(this.#context, session, handover, settings);
    const grants = await resumption.run();
    const { ended } = session;
    if (ended !== undefined)
      throw new LeaseLostError(handover.name, handover.token, 'its session ended', { cause: ended });
    this.#context.service.closeSession(handover.session).catch(leaveToExpiry);
    return this.#hold(session, { id: resumption.requestId, forget: true }, grants, now(this.#context.clock));
  }

  async position(name: string, requestId: string): Promise<number | null> {
    for (const session of this.#sessions.live) {
      const position = await session.applicant(requestId)?.position(name);
      if (typeof position === 'number') return position;
    }
    return null;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const { clock } = this.#context;
    const closings = this.#sessions.shut().map(async (session) => {
      const { holds } = session;
      const reason = new ClosedError('This Pawl client');
      const closing = session.close(reason);
      for (const hold of holds) this.#released(hold, reason);
      await within(clock, RELEASE_PATIENCE_MS, closing.catch(leaveToExpiry));
    });
    await Promise.all(closings);
  }

  #hold(
    session: ClientSession,
    request: { readonly id: string; readonly forget: boolean },
    grants: readonly GrantedLock[],
    startedAt: Moment,
  ): Hold {
    const hold = new Hold(session, request, grants, now(this.#context.clock));
    session.addHold(hold);
    const { announcer, clock } = this.#context;
    if (announcer.hears('acquired')) {
      const waitedMs = elapsedMs(clock, startedAt);
      for (const { name, token, slot } of grants) announcer.emit('acquired', { name, token, slot, waitedMs });
    }
    return hold;
  }

  /** Releases at the engine, for as long as that takes. @throws what says that it cannot be known whether it happened */
  async #giveBack(hold: Hold): Promise<void> {
    const { session, requestId, grants, forget } = hold;
    const { service, clock } = this.#context;
    const id = { session: session.id, request: requestId };
    let doubtful = false;
    const goOn = (error: PawlError) => {
      doubtful ||= error.outcome === 'indefinite';
      return session.ended === undefined;
    };
    let happened: boolean;
    try {
      const { kind } = await settle(() => service.release(id, grants, forget), { clock, goOn });
      // A release that is forgotten cannot be told from none when it is repeated.
      happened = kind !== 'notHeld' || (doubtful && (await releaseHappened(service, session.id, grants)));
    } finally {
      // What cannot be repeated is left to the end of the session, which this must not put off.
      session.removeHold(hold);
    }
    if (happened) this.#released(hold);
    else hold.lost('the engine says that it is not held');
  }

  #released(hold: Hold, reason?: ClosedError): void {
    if (!hold.inForce) return;
    hold.ended('released', reason);
    const { announcer, clock } = this.#context;
    if (!announcer.hears('released')) return;
    const heldMs = elapsedMs(clock, hold.since);
    for (const { name, token } of hold.grants) announcer.emit('released', { name, token, heldMs });
  }

  #rememberCleanUp(requestId: string, cleanUp: Promise<void>): void {
    this.#cleanUps.set(requestId, cleanUp);
    void cleanUp.then(() => {
      if (this.#cleanUps.get(requestId) === cleanUp) this.#cleanUps.delete(requestId);
    });
  }

  /** The session for a new lease, where one is open and nobody waits for it. */
  #openSession(ttlMs: number): ClientSession | undefined {
    return this.#awaiting === 0 && !this.#closed ? this.#sessions.present(ttlMs) : undefined;
  }

  /** The session for a new lease, unless that takes longer than the caller is ready to wait. */
  async #session(
    settings: CheckedSettings,
    name: string,
    leftMs: () => number | undefined,
  ): Promise<ClientSession> {
    if (this.#closed) throw new ClosedError('This Pawl client');
    this.#awaiting += 1;
    try {
      const limitMs = leftMs();
      const opened = await this.#whilePatient(this.#sessions.get(settings.ttlMs), settings, name, limitMs);
      if (opened !== undefined) return opened.value;
      throw new EngineUnavailableError(
        `The engine has not opened a session within ${Math.round(patienceMs(settings.waitMs, limitMs))} ms, so lock "${name}" was not asked for.`,
        'definite',
      );
    } finally {
      // Once the caller has gone on.
      queueMicrotask(() => {
        this.#awaiting -= 1;
      });
    }
  }

  /**
   * What `work` of the engine comes to, or `undefined` if that takes longer than the caller is ready to wait for it.
   *
   * @throws AcquireAbortedError
   */
  async #whilePatient<T>(
    work: Promise<T>,
    { signal, waitMs }: CheckedSettings,
    name: string,
    leftMs: number | undefined,
  ): Promise<{ value: T } | undefined> {
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const onAbort = () => reject(new AcquireAbortedError(name, signal?.reason));
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      const limited = within(this.#context.clock, patienceMs(waitMs, leftMs), work);
      return await Promise.race([limited, aborted]);
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }
}

/** How long a caller waits for the engine: for as long as for the lock, but 0 is an attempt and no hurry. */
function patienceMs(waitMs: number | undefined, leftMs: number | undefined): number {
  return waitMs === 0 || leftMs === undefined ? ENGINE_LIMIT_MS : Math.min(leftMs, ENGINE_LIMIT_MS);
}

/** What a request whose id its caller chose holds already. */
function holdOf(session: ClientSession, requestId: string): Hold | undefined {
  return session.holds.find((hold) => hold.requestId === requestId && !hold.isLeaving);
}

function noLimit(): undefined {}

function leaveToExpiry(): void {}

function ignore(): void {}
