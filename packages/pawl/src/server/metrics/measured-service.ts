import type { Clock } from '../../clock.ts';
import type { AskedLock, RequestId } from '../../core/commands.ts';
import type { AcquireAnswer, AcquireOptions, LockService, SessionEvent } from '../../node/service.ts';
import { TransientMap } from '../../transient-map.ts';
import type { ServerMetrics } from './server-metrics.ts';

/** A grant that comes later than this after a release was not handed over by it, in ms. */
const HANDOVER_LIMIT_MS = 1000;
/** Releases that are looked at for what they hand over. */
const MOST_RELEASES = 1000;

/** The same service, with its grants, waits and hand-overs measured. */
export class MeasuredService implements LockService {
  readonly #service: LockService;
  readonly #clock: Clock;
  readonly #metrics: ServerMetrics;
  /** When each acquire that may wait was asked for. */
  readonly #asked = new Map<string, TransientMap<string, number>>();
  readonly #releasedAtMs = new TransientMap<string, number>();
  #depth = 0;

  readonly guarantees;
  readonly openSession;
  readonly keepAlive;
  readonly transfer;
  readonly inspect;
  readonly list;
  readonly position;
  readonly close;

  constructor(service: LockService, clock: Clock, metrics: ServerMetrics) {
    this.#service = service;
    this.#clock = clock;
    this.#metrics = metrics;
    this.guarantees = service.guarantees;
    this.openSession = service.openSession.bind(service);
    this.keepAlive = service.keepAlive.bind(service);
    this.transfer = service.transfer.bind(service);
    this.inspect = service.inspect.bind(service);
    this.list = service.list.bind(service);
    this.position = service.position.bind(service);
    this.close = service.close.bind(service);
  }

  /** Acquires that were asked for here and are not decided. */
  get queueDepth(): number {
    return this.#depth;
  }

  acquire(id: RequestId, locks: readonly AskedLock[], options: AcquireOptions): Promise<AcquireAnswer> {
    const fromMs = this.#clock.monotonicMs();
    if (options.wait) this.#note(id, fromMs);
    const answered = (answer: AcquireAnswer) => {
      if (answer.kind === 'queued') {
        this.#metrics.waits.add();
        return answer;
      }
      this.#settled(id);
      if (answer.kind === 'granted') {
        for (const { name } of locks) this.#releasedAtMs.delete(name);
        this.#granted(locks.length, fromMs);
      } else this.#metrics.refused.add(1, REFUSALS[answer.kind]);
      return answer;
    };
    const failed = (error: unknown) => {
      this.#settled(id);
      throw error;
    };
    return this.#service.acquire(id, locks, options).then(answered, failed);
  }

  release(...[id, grants, forget]: Parameters<LockService['release']>) {
    const nowMs = this.#clock.monotonicMs();
    for (const { name } of grants) this.#noteRelease(name, nowMs);
    return this.#service.release(id, grants, forget).then((outcome) => {
      if (outcome.kind === 'released') this.#metrics.endings.add(grants.length, 'released');
      return outcome;
    });
  }

  async cancel(...[id, names, forget]: Parameters<LockService['cancel']>) {
    this.#settled(id);
    const outcome = await this.#service.cancel(id, names, forget);
    this.#metrics.endings.add(1, 'cancelled');
    return outcome;
  }

  async breakHold(...[target, reason, by]: Parameters<LockService['breakHold']>) {
    const outcome = await this.#service.breakHold(target, reason, by);
    if (outcome.kind === 'broken') this.#metrics.endings.add(1, 'broken');
    return outcome;
  }

  closeSession(session: string): Promise<void> {
    this.sessionOver(session);
    return this.#service.closeSession(session);
  }

  listen(session: string, listener: (event: SessionEvent) => void): () => void {
    const stop = this.#service.listen(session, (event) => {
      if (event.kind === 'granted') this.#grantedLater(session, event);
      listener(event);
    });
    return () => {
      stop();
      // Its waiters are gone, or go on at another server: nobody here would hear of their end.
      this.sessionOver(session);
    };
  }

  /** Nothing of this session waits any more. */
  sessionOver(session: string): void {
    this.#depth -= this.#asked.get(session)?.size ?? 0;
    this.#asked.delete(session);
  }

  #grantedLater(session: string, { request, grants }: SessionEvent & { kind: 'granted' }): void {
    const fromMs = this.#asked.get(session)?.get(request);
    this.#settled({ session, request });
    if (fromMs === undefined) return;
    this.#granted(grants.length, fromMs);
    for (const { name } of grants) {
      const tookMs = this.#clock.monotonicMs() - (this.#releasedAtMs.get(name) ?? Number.NEGATIVE_INFINITY);
      if (tookMs <= HANDOVER_LIMIT_MS) this.#metrics.handoverSeconds.observe(tookMs / 1000);
      this.#releasedAtMs.delete(name);
    }
  }

  #granted(locks: number, fromMs: number): void {
    this.#metrics.grants.add(locks);
    this.#metrics.acquireSeconds.observe((this.#clock.monotonicMs() - fromMs) / 1000);
  }

  #note({ session, request }: RequestId, nowMs: number): void {
    const requests = this.#asked.get(session) ?? new TransientMap<string, number>();
    if (requests.has(request)) return;
    this.#asked.set(session, requests.set(request, nowMs));
    this.#depth += 1;
  }

  #settled({ session, request }: RequestId): void {
    const requests = this.#asked.get(session);
    if (requests?.delete(request)) this.#depth -= 1;
    if (requests?.size === 0) this.#asked.delete(session);
  }

  #noteRelease(name: string, nowMs: number): void {
    this.#releasedAtMs.delete(name);
    this.#releasedAtMs.set(name, nowMs);
    if (this.#releasedAtMs.size <= MOST_RELEASES) return;
    for (const oldest of this.#releasedAtMs.keys()) {
      this.#releasedAtMs.delete(oldest);
      return;
    }
  }
}

/** The codes of what an acquire is refused with. */
export const REFUSALS = {
  held: 'PAWL_HELD',
  finished: 'PAWL_REQUEST_FINISHED',
  mismatch: 'PAWL_REQUEST_MISMATCH',
  sessionEnded: 'PAWL_SESSION_ENDED',
  shape: 'PAWL_LOCK_SHAPE',
  queueFull: 'PAWL_QUEUE_FULL',
} as const;
