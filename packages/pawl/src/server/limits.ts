import { InvalidArgumentError, LimitError } from '../errors.ts';

/** What clients may make a server grow to. Each is a whole number from 1; who goes beyond is refused, or cut off. */
export interface Limits {
  /** Open connections, of WebSocket and HTTP together; further ones are closed at once. 10,000 unless set. */
  readonly connections: number;
  /** Bytes of one WebSocket frame; a longer one closes its connection. 1 MiB unless set. */
  readonly frameBytes: number;
  /** Messages of one frame; more close the connection. 10,000 unless set. */
  readonly messagesPerFrame: number;
  /** Requests of one WebSocket connection without an answer; further ones are refused. 1024 unless set. */
  readonly requestsInFlight: number;
  /**
   * Requests of all WebSocket connections without an answer; further ones are refused, but renewals and what gives locks back only
   * at twice as many. 32,768 unless set.
   */
  readonly requests: number;
  /** Sessions that are served here. 100,000 unless set. */
  readonly sessions: number;
  /** Sessions that one connection opens or listens to. 1000 unless set. */
  readonly sessionsPerConnection: number;
  /** Sessions that one connection may name at the same time without their being known here to be alive. 64 unless set. */
  readonly unknownSessions: number;
  /** Locks that one session holds and waits for. 10,000 unless set. */
  readonly locksPerSession: number;
  /** Request ids that are remembered after their end, so that a late duplicate is none; per session. 1,000,000 unless set. */
  readonly requestsPerSession: number;
  /** Waiters of one lock. 100,000 unless set. */
  readonly waitersPerLock: number;
  /** Bytes on their way to a client that does not read; more cut its connection. 8 MiB unless set. */
  readonly bufferedBytes: number;
  /** Bytes of the body of an HTTP request. 64 KiB unless set. */
  readonly bodyBytes: number;
  /** Bytes of the head of an HTTP request. 16 KiB unless set. */
  readonly headerBytes: number;
  /** How long an acquire by HTTP may wait, in ms. 60,000 unless set. */
  readonly longPollMs: number;
  /** Acquires by HTTP that wait at the same time. 10,000 unless set. */
  readonly longPolls: number;
  /** Watches by HTTP at the same time. 1000 unless set. */
  readonly watches: number;
}

export const DEFAULT_LIMITS: Limits = {
  connections: 10_000,
  frameBytes: 1024 * 1024,
  messagesPerFrame: 10_000,
  requestsInFlight: 1024,
  requests: 32_768,
  sessions: 100_000,
  sessionsPerConnection: 1000,
  unknownSessions: 64,
  locksPerSession: 10_000,
  requestsPerSession: 1_000_000,
  waitersPerLock: 100_000,
  bufferedBytes: 8 * 1024 * 1024,
  bodyBytes: 64 * 1024,
  headerBytes: 16 * 1024,
  longPollMs: 60_000,
  longPolls: 10_000,
  watches: 1000,
};

/** @throws InvalidArgumentError where they are no object, or one is unknown or no whole number from 1. */
export function checkLimits(given: Partial<Limits> = {}): Limits {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new InvalidArgumentError('limits', 'an object of limits', given);
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(DEFAULT_LIMITS, name))
      throw new InvalidArgumentError('limits', `made of ${Object.keys(DEFAULT_LIMITS).join(', ')}`, name);
    if (!Number.isSafeInteger(value) || Number(value) < 1)
      throw new InvalidArgumentError(`limits.${name}`, 'a whole number from 1', value);
  }
  return { ...DEFAULT_LIMITS, ...given };
}

/** Refuses what would be one more than the limit. @throws LimitError */
export function checkLimit(limits: Limits, name: keyof Limits, present: number, advice: string): void {
  if (present >= limits[name]) throw new LimitError(name, limits[name], advice);
}
