import { type Clock, systemClock } from '../../clock.ts';
import { encodeName } from '../../core/names.ts';
import { AcquireAbortedError, AcquireTimeoutError, HeldError } from '../../errors.ts';
import type { EngineGuarantees } from '../engine.ts';
import {
  checkAcquire,
  checkClients,
  checkDuration,
  checkPrefix,
  type RedlockAcquire,
  type RedlockAttempt,
} from './arguments.ts';
import { type AttemptResult, attempt } from './attempt.ts';
import { Instances, type RedlockClient } from './instances.ts';
import type { RedlockLease } from './lease.ts';
import { redlockKeys } from './scripts.ts';

export type { RedlockAcquire, RedlockAttempt } from './arguments.ts';
export type { RedlockClient } from './instances.ts';
export type { RedlockLease } from './lease.ts';

const DEFAULT_RETRY_DELAY_MS = 200;
const DEFAULT_INSTANCE_TIMEOUT_MS = 50;

/** What Redlock promises. */
export const redlockGuarantees: EngineGuarantees = {
  engine: 'redlock',
  survives: 'the loss of a minority of its Redis, if the others keep their clocks and what they wrote',
  expiryDecidedBy: "each Redis' clock and the client's",
  tokensRestOn: 'the highest counter of a quorum',
  wakeUp: 'none: contenders try again',
  durable: false,
  mutualExclusion: 'clock-dependent',
  needsFencing: true,
  minTtlMs: 100,
  sweepMs: DEFAULT_RETRY_DELAY_MS,
};

export interface RedlockOptions {
  /**
   * The user's own connections, such as ioredis' `new Redis(…)`: one to each of an odd number of Redis that know nothing of each
   * other (no replicas). They stay open. `maxRetriesPerRequest: 1` makes a Redis that is down fail at once.
   */
  readonly clients: readonly RedlockClient[];
  /** The beginning of all keys, `redlock` unless set; 1 to 64 letters, digits, `_`, `-`, `.` or `:`. */
  readonly prefix?: string;
  readonly clock?: Clock;
  /** The longest pause between two attempts, in ms, 200 unless set; each is a random time from half of it up. */
  readonly retryDelayMs?: number;
  /** How long one Redis may take to answer, in ms, 50 unless set. Keep it far below the TTLs. */
  readonly instanceTimeoutMs?: number;
}

/** Locks by the Redlock algorithm. */
export interface Redlock {
  readonly guarantees: EngineGuarantees;

  /**
   * Tries again and again until the lock is granted. There is no queue: whoever tries at the right moment gets it.
   *
   * @throws AcquireTimeoutError, or HeldError with `waitMs` 0, where others had it all the time; AcquireAbortedError; EngineUnavailableError
   *   as soon as no quorum answers, or if at the end of the wait the Redis were too slow for the TTL; InvalidArgumentError; TtlTooShortError.
   */
  acquire(name: string, options: RedlockAcquire): Promise<RedlockLease>;

  /**
   * One attempt. Of contenders in the same instant it may be that none gets the lock.
   *
   * @returns null where another stood in the way.
   * @throws EngineUnavailableError, InvalidArgumentError, TtlTooShortError
   */
  tryAcquire(name: string, options: RedlockAttempt): Promise<RedlockLease | null>;
}

/**
 * The Redlock algorithm of "Distributed Locks with Redis" (redis.io), with fencing tokens added: a lock is held by whoever has set
 * a random value on a majority of independent Redis, for its TTL less the time that took and an allowance for drifting clocks.
 * It is here for those who run it already, and to be compared. It is no {@link Engine}: it has no conditional writes.
 *
 * **Its exclusion rests on clocks**: those of all Redis and of the client must run at about the same rate and never step, and no
 * Redis may forget what it wrote while a lock lasts. If not, two clients hold one lock at the same time and both believe so; see
 * Kleppmann, "How to do distributed locking" (2016). Hence the tokens, and a fence at the resource.
 *
 * **Tokens** are not part of Redlock. Each Redis keeps a counter for each lock name; a grant's token is one more than the highest
 * that its quorum has, and it counts only after a quorum has written it down. As two quorums share a Redis, tokens rise, even
 * where two hold at once, as long as no Redis loses a counter. One that restarts without persistence does lose it: then a token may
 * be given twice or fall, and a fence refuses the new holder or cannot tell the two apart. So run each Redis with
 * `appendfsync always`, never give one back an emptied disk, and let no lock's counter be evicted. The counters stay for ever,
 * a small key for each name that was ever granted.
 *
 * @throws InvalidArgumentError
 */
export function redlock(options: RedlockOptions): Redlock {
  const {
    clients,
    prefix = 'redlock',
    clock = systemClock,
    retryDelayMs = DEFAULT_RETRY_DELAY_MS,
    instanceTimeoutMs = DEFAULT_INSTANCE_TIMEOUT_MS,
  } = options;
  checkClients(clients);
  checkPrefix(prefix);
  checkDuration('retryDelayMs', retryDelayMs, 1);
  checkDuration('instanceTimeoutMs', instanceTimeoutMs, 1);
  return new RedlockOverInstances(new Instances([...clients], clock, instanceTimeoutMs), {
    prefix,
    clock,
    retryDelayMs,
  });
}

interface Settings {
  readonly prefix: string;
  readonly clock: Clock;
  readonly retryDelayMs: number;
}

class RedlockOverInstances implements Redlock {
  readonly guarantees = redlockGuarantees;
  readonly #instances: Instances;
  readonly #settings: Settings;

  constructor(instances: Instances, settings: Settings) {
    this.#instances = instances;
    this.#settings = settings;
  }

  async acquire(name: string, options: RedlockAcquire): Promise<RedlockLease> {
    checkAcquire(name, options, this.guarantees.minTtlMs);
    const { ttlMs, waitMs = Number.POSITIVE_INFINITY, signal } = options;
    const { clock, retryDelayMs } = this.#settings;
    const sinceMs = clock.monotonicMs();
    while (!signal?.aborted) {
      const result = await this.#attempt(name, ttlMs);
      if (result.kind === 'granted') {
        if (!signal?.aborted) return result.lease;
        await result.lease[Symbol.asyncDispose]();
        break;
      }
      if (result.kind === 'unavailable') throw result.error;
      const waitedMs = clock.monotonicMs() - sinceMs;
      if (waitedMs >= waitMs) {
        if (result.kind === 'late') throw result.error;
        throw waitMs === 0 ? new HeldError(name) : new AcquireTimeoutError(name, Math.round(waitedMs));
      }
      const delayMs = retryDelayMs * (0.5 + Math.random() / 2);
      await pause(clock, Math.min(delayMs, waitMs - waitedMs), signal);
    }
    throw new AcquireAbortedError(name, signal.reason);
  }

  async tryAcquire(name: string, options: RedlockAttempt): Promise<RedlockLease | null> {
    checkAcquire(name, options, this.guarantees.minTtlMs);
    const result = await this.#attempt(name, options.ttlMs);
    if (result.kind === 'granted') return result.lease;
    if (result.kind === 'held') return null;
    throw result.error;
  }

  #attempt(name: string, ttlMs: number): Promise<AttemptResult> {
    const keys = redlockKeys(this.#settings.prefix, encodeName(name));
    return attempt(this.#instances, this.#settings.clock, { name, keys, ttlMs });
  }
}

/** Resolves after `delayMs`, or as soon as `signal` aborts. */
async function pause(clock: Clock, delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const wake = () => resolve();
  const timer = clock.setTimer(delayMs, wake);
  signal?.addEventListener('abort', wake);
  if (signal?.aborted) wake();
  await promise;
  timer.cancel();
  signal?.removeEventListener('abort', wake);
}
