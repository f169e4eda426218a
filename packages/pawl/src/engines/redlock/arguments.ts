import { nameProblem } from '../../core/names.ts';
import { InvalidArgumentError, TtlTooShortError } from '../../errors.ts';

/** The longest TTL and wait, in ms: 30 days. */
const LONGEST_MS = 30 * 24 * 3_600_000;

/** Settings of one attempt. */
export interface RedlockAttempt {
  /** How long the lock lasts unless extended or released, in ms; also how long a dead holder blocks the others. */
  readonly ttlMs: number;
}

/** Settings of an acquire. */
export interface RedlockAcquire extends RedlockAttempt {
  /**
   * How long to try, in ms; without end unless set. The last attempt is begun at the end of the wait, and an attempt that was
   * begun is finished. With 0 there is one attempt.
   */
  readonly waitMs?: number | undefined;
  /** Ends the acquire; the attempt under way is finished and given back first. */
  readonly signal?: AbortSignal | undefined;
}

/** @throws InvalidArgumentError, TtlTooShortError */
export function checkAcquire(name: unknown, settings: RedlockAcquire, minTtlMs: number): void {
  const problem = nameProblem(name);
  if (problem !== undefined) {
    throw new InvalidArgumentError('name', `a string of 1 to 512 bytes of UTF-8 (it ${problem})`, name);
  }
  if (typeof settings !== 'object' || settings === null) {
    throw new InvalidArgumentError('options', 'an object with ttlMs', settings);
  }
  const { ttlMs, waitMs, signal } = settings;
  checkDuration('ttlMs', ttlMs, 1);
  if (ttlMs < minTtlMs) throw new TtlTooShortError('ttlMs', ttlMs, minTtlMs, 'redlock');
  if (waitMs !== undefined) checkDuration('waitMs', waitMs, 0);
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new InvalidArgumentError('signal', 'an AbortSignal', signal);
  }
}

/** @throws InvalidArgumentError */
export function checkDuration(parameter: string, value: unknown, leastMs: number): void {
  if (Number.isSafeInteger(value) && Number(value) >= leastMs && Number(value) <= LONGEST_MS) return;
  throw new InvalidArgumentError(
    parameter,
    `a whole number of ms from ${leastMs} to ${LONGEST_MS} (30 days)`,
    value,
  );
}

/** @throws InvalidArgumentError where `clients` are not distinct connections. */
export function checkClients(clients: unknown): void {
  const distinct = Array.isArray(clients) && clients.length > 0 && new Set(clients).size === clients.length;
  if (distinct && clients.every((client) => typeof client?.call === 'function')) return;
  throw new InvalidArgumentError('clients', 'connections of ioredis, each to a Redis of its own', clients);
}

/** @throws InvalidArgumentError */
export function checkPrefix(prefix: unknown): void {
  if (typeof prefix === 'string' && /^[\w.:-]{1,64}$/.test(prefix)) return;
  throw new InvalidArgumentError('prefix', '1 to 64 letters, digits, "_", "-", "." or ":"', prefix);
}
