import type { AskedLock, RequestId } from '../../core/commands.ts';
import {
  AcquireTimeoutError,
  ClosedError,
  HeldError,
  LockShapeError,
  type PawlError,
  QueueFullError,
  RequestFinishedError,
  RequestMismatchError,
  SessionEndedError,
} from '../../errors.ts';
import type { AcquireAnswer, AcquireOptions, GrantedLock } from '../../node/service.ts';
import { checkLimit } from '../limits.ts';
import type { ServerParts } from '../parts.ts';
import type { Principal } from '../principal.ts';
import type { Exchange } from './exchange.ts';

/** One acquire by HTTP. */
export interface PolledAcquire {
  readonly id: RequestId;
  readonly lock: AskedLock;
  readonly options: AcquireOptions;
  readonly waitMs: number;
}

/**
 * Acquires that wait for their grant while their HTTP request is open. Whoever repeats one with the same ids, after its connection
 * broke, waits on in the same place; what nobody repeats is cancelled when its time is up (S6).
 */
export class LongPolls {
  readonly #parts: ServerParts;
  /** By session and request, the newest poll of it. */
  readonly #polls = new Map<string, (error: PawlError) => void>();

  constructor(parts: ServerParts) {
    this.#parts = parts;
  }

  /** @throws AcquireTimeoutError, HeldError, and what else refuses an acquire */
  async acquire(
    principal: Principal,
    { id, lock, options, waitMs }: PolledAcquire,
    exchange: Exchange,
  ): Promise<GrantedLock> {
    const { clock, limits, desk, sessions, tracing } = this.#parts;
    if (options.wait) checkLimit(limits, 'longPolls', this.#polls.size, 'try again later');
    const key = `${id.session}/${id.request}`;
    const { promise, resolve, reject } = Promise.withResolvers<GrantedLock>();
    promise.catch(() => {});
    const stop = sessions.subscribe(id.session, (event) => {
      if (event.kind !== 'granted' || event.request !== id.request) return;
      const [grant] = event.grants;
      if (grant !== undefined) resolve(grant);
    });
    this.#polls.get(key)?.(new RequestMismatchError(id.request));
    this.#polls.set(key, reject);
    const timer = clock.setTimer(waitMs, () => reject(new AcquireTimeoutError(lock.name, waitMs)), {
      keepProcess: false,
    });
    try {
      const call = { method: 'acquire', id, locks: [lock], options } as const;
      const answer = await desk.perform(principal, call, exchange);
      if (answer.kind !== 'queued') return this.#decided(answer, id);
      return await promise;
    } catch (error) {
      if (this.#polls.get(key) === reject) tracing?.gaveUp(id, error);
      if (error instanceof AcquireTimeoutError)
        await desk.perform(principal, { method: 'cancel', id, names: [lock.name], forget: false });
      throw error;
    } finally {
      timer.cancel();
      stop();
      if (this.#polls.get(key) === reject) this.#polls.delete(key);
    }
  }

  /** Tells all that wait to ask another server; their places in the queues stay. */
  close(): void {
    for (const turnAway of [...this.#polls.values()]) turnAway(new ClosedError('This server'));
  }

  #decided(answer: Exclude<AcquireAnswer, { kind: 'queued' }>, { request }: RequestId): GrantedLock {
    switch (answer.kind) {
      case 'granted': {
        const [grant] = answer.grants;
        if (grant === undefined) throw new Error('a grant without a lock');
        return grant;
      }
      case 'held':
        throw new HeldError(answer.name);
      case 'queueFull':
        throw new QueueFullError(answer.name, answer.limit);
      case 'shape':
        throw new LockShapeError(answer.name, shapeName(answer.present), shapeName(answer.asked));
      case 'mismatch':
        throw new RequestMismatchError(request);
      case 'finished':
        throw new RequestFinishedError(request, answer.how);
      case 'sessionEnded':
        throw new SessionEndedError('the engine ended it');
    }
  }
}

function shapeName(permits: number | null): string {
  return permits === null ? 'a lock' : `a semaphore of ${permits}`;
}
