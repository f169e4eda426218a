import type { Clock, Timer } from '../clock.ts';
import { type PawlError, RequestFinishedError, SessionEndedError } from '../errors.ts';
import type { LockService, SessionEvent } from '../node/service.ts';
import { TransientMap } from '../transient-map.ts';
import { elapsedMs, type Moment, now } from './deadline.ts';
import type { Announcer } from './events.ts';
import type { Hold } from './hold.ts';

/** However long the TTL, the clocks are compared this often, so that a machine that slept is noticed soon. */
const LONGEST_TICK_MS = 1000;
/** So many renewals may be without an answer at once. */
const MOST_RENEWALS = 3;

export interface SessionContext {
  readonly service: LockService;
  readonly clock: Clock;
  readonly announcer: Announcer;
  /** Called once when the session takes no more part: it ended, or nothing used it. */
  readonly onOver: (session: ClientSession) => void;
}

/** Somebody who waits for a grant in this session. */
export interface Applicant {
  readonly requestId: string;
  granted(event: SessionEvent & { kind: 'granted' }): void;
  turnedAway(error: PawlError): void;
  /** How many wait ahead of it for the lock `name`, or `null` where it does not wait for that. */
  position(name: string): Promise<number | null>;
}

/**
 * A client's liveness at the engine, shared by all its leases of one TTL: one keep-alive covers them all (C2). Its
 * deadline is that of every lease in it, and counts from before the last request that opened or renewed it was sent (C1).
 */
export class ClientSession {
  readonly id: string;
  readonly ttlMs: number;
  readonly #context: SessionContext;
  readonly #holds = new TransientMap<Hold, Hold>();
  readonly #applicants = new TransientMap<string, Applicant>();
  readonly #freshWaits = new Set<() => void>();
  readonly #unlisten: () => void;
  /** When the last renewal that succeeded was sent. */
  #renewedAt: Moment;
  #triedAt: Moment;
  #underWay = 0;
  #timer: Timer | undefined;
  #lastFailure: unknown;
  #ended: PawlError | undefined;

  /** @param openedAt taken before the request that opened the session was sent. */
  constructor(id: string, ttlMs: number, openedAt: Moment, context: SessionContext) {
    this.id = id;
    this.ttlMs = ttlMs;
    this.#context = context;
    this.#renewedAt = openedAt;
    this.#triedAt = openedAt;
    this.#unlisten = context.service.listen(id, (event) => this.#hear(event));
    this.#arm();
  }

  /** Time until the deadline, in ms; 0 once it passed. */
  get remainingMs(): number {
    if (this.#ended !== undefined) return 0;
    return Math.max(0, this.ttlMs - elapsedMs(this.#context.clock, this.#renewedAt));
  }

  /** Whether it ended, as far as is known. */
  get ended(): PawlError | undefined {
    return this.#ended;
  }

  /** Whether nothing is held or applied for in it. */
  get idle(): boolean {
    return this.#holds.size === 0 && this.#applicants.size === 0;
  }

  /** Whether a new lease could start here with more than half of its TTL before it. */
  get fresh(): boolean {
    return this.#ended === undefined && this.remainingMs > this.ttlMs / 2;
  }

  addApplicant(applicant: Applicant): void {
    this.#applicants.set(applicant.requestId, applicant);
  }

  applicant(requestId: string): Applicant | undefined {
    return this.#applicants.get(requestId);
  }

  removeApplicant(applicant: Applicant): void {
    if (this.#applicants.get(applicant.requestId) === applicant) this.#applicants.delete(applicant.requestId);
  }

  addHold(hold: Hold): void {
    this.#holds.set(hold, hold);
  }

  removeHold(hold: Hold): void {
    this.#holds.delete(hold);
  }

  get holds(): readonly Hold[] {
    return [...this.#holds.values()];
  }

  /** Resolves once the session is fresh: at once, or after the next renewal. @throws what ended it */
  async untilFresh(): Promise<void> {
    while (!this.fresh) {
      this.checkDeadline();
      if (this.#ended !== undefined) throw this.#ended;
      const renewed = new Promise<void>((resolve) => this.#freshWaits.add(resolve));
      void this.#renew();
      await renewed;
    }
  }

  /** Ends the session if its deadline has passed, without waiting for a timer to notice. */
  checkDeadline(): void {
    if (this.#ended === undefined && this.remainingMs === 0) {
      this.end(`no renewal succeeded within its TTL of ${this.ttlMs} ms`, this.#lastFailure);
    }
  }

  /** Everything in it is over: leases are lost and applicants turned away. Final. */
  end(reason: string, cause?: unknown): void {
    if (this.#ended !== undefined) return;
    this.#ended = new SessionEndedError(reason);
    this.#stop();
    for (const hold of this.#holds.values()) this.#lose(hold, `its session ended, since ${reason}`, cause);
    this.#holds.clear();
    for (const applicant of [...this.#applicants.values()]) applicant.turnedAway(this.#ended);
    this.#applicants.clear();
    this.#wakeFreshWaits();
  }

  /** Gives back all that is held and ends the session at the engine. */
  async close(reason: PawlError): Promise<void> {
    if (this.#ended !== undefined) return;
    this.#ended = reason;
    this.#stop();
    for (const applicant of [...this.#applicants.values()]) applicant.turnedAway(this.#ended);
    this.#applicants.clear();
    this.#wakeFreshWaits();
    await this.#context.service.closeSession(this.id);
  }

  #stop(): void {
    this.#timer?.cancel();
    this.#unlisten();
    this.#context.onOver(this);
  }

  #wakeFreshWaits(): void {
    for (const wake of this.#freshWaits) wake();
    this.#freshWaits.clear();
  }

  #arm(): void {
    const sinceMs = elapsedMs(this.#context.clock, this.#renewedAt);
    const nextMs = [this.#renewalDueInMs(), this.ttlMs / 2 - sinceMs, this.ttlMs - sinceMs].filter(
      (ms) => ms > 0,
    );
    const delayMs = Math.min(...nextMs, LONGEST_TICK_MS);
    this.#timer?.cancel();
    this.#timer = this.#context.clock.setTimer(Math.ceil(delayMs), () => this.#tick(), {
      keepProcess: false,
    });
  }

  /** At a third of the TTL (C2), and after a failure again after a twelfth. */
  #renewalDueInMs(): number {
    const { clock } = this.#context;
    const sinceMs = elapsedMs(clock, this.#renewedAt);
    const sinceTryMs = elapsedMs(clock, this.#triedAt);
    return Math.max(this.ttlMs / 3 - sinceMs, this.ttlMs / 12 - sinceTryMs);
  }

  #tick(): void {
    this.checkDeadline();
    if (this.#ended !== undefined) return;
    const sinceMs = elapsedMs(this.#context.clock, this.#renewedAt);
    if (sinceMs >= this.ttlMs / 2) this.#safeStop(sinceMs);
    if (this.#renewalDueInMs() <= 0) {
      if (this.idle) {
        this.close(new SessionEndedError('nothing used it')).catch(leaveToExpiry);
        return;
      }
      void this.#renew();
    }
    if (this.#ended === undefined) this.#arm();
  }

  #safeStop(sinceMs: number): void {
    for (const hold of this.#holds.values()) {
      const error = hold.endangered(sinceMs, this.#lastFailure);
      if (error === undefined) continue;
      for (const { name, token } of hold.grants)
        this.#context.announcer.emit('atRisk', { name, token, error });
    }
  }

  async #renew(): Promise<void> {
    if (this.#underWay >= MOST_RENEWALS) return;
    const { service, clock, announcer } = this.#context;
    const sentAt = now(clock);
    this.#triedAt = sentAt;
    this.#underWay += 1;
    try {
      const asked = [...this.#holds.values()].filter((hold) => !hold.isLeaving);
      const holds = asked.flatMap((hold) =>
        hold.grants.map(({ name }) => ({ request: hold.requestId, name })),
      );
      const { alive, gone } = await service.keepAlive(this.id, holds);
      if (this.#ended !== undefined) return;
      if (!alive) {
        this.end('the engine ended it');
        return;
      }
      if (sentAt.monotonicMs >= this.#renewedAt.monotonicMs) this.#renewedAt = sentAt;
      this.checkDeadline();
      if (this.#ended !== undefined) return;
      this.#arm();
      this.#wakeFreshWaits();
      for (const { request, name } of gone)
        this.#loseByRequest(request, `the engine says that "${name}" is not held`);
    } catch (error) {
      this.#lastFailure = error;
      if (this.#ended === undefined) announcer.emit('renewFailed', { ttlMs: this.ttlMs, error });
    } finally {
      this.#underWay -= 1;
    }
  }

  #hear(event: SessionEvent): void {
    if (event.kind === 'granted') this.#applicants.get(event.request)?.granted(event);
    else {
      this.#applicants.get(event.request)?.turnedAway(new RequestFinishedError(event.request, 'broken'));
      this.#loseByRequest(event.request, `it was broken (${event.reason})`);
    }
  }

  #loseByRequest(requestId: string, reason: string): void {
    for (const hold of [...this.#holds.values()]) {
      // One that is on its way back hears from its release what became of it.
      if (hold.requestId !== requestId || hold.isLeaving) continue;
      this.#holds.delete(hold);
      this.#lose(hold, reason);
      this.#giveBackRest(hold);
    }
  }

  /** Of several locks that were granted together one was taken: the others go too, all or nothing. */
  #giveBackRest(hold: Hold): void {
    if (hold.grants.length === 1) return;
    const id = { session: this.id, request: hold.requestId };
    this.#context.service
      .cancel(
        id,
        hold.grants.map((grant) => grant.name),
        hold.forget,
      )
      .catch(leaveToExpiry);
  }

  #lose(hold: Hold, reason: string, cause?: unknown): void {
    const error = hold.lost(reason, cause);
    if (error === undefined) return;
    for (const { name, token } of hold.grants) this.#context.announcer.emit('lost', { name, token, error });
  }
}

function leaveToExpiry(): void {}
