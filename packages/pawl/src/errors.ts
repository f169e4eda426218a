/**
 * Every error of Pawl, one class for each thing a caller can react to. All carry a stable `code`, which is what
 * programs should compare: classes of two copies of the package differ, codes do not. `docs/errors.md` lists them.
 */

/**
 * Whether what was asked surely did not happen (`definite`) or may have happened (`indefinite`).
 * An indefinite acquire or release is settled by its request id: repeat it with the same id.
 */
export type ErrorOutcome = 'definite' | 'indefinite';

const brand = Symbol.for('pawl.error');

/** The base of every error that Pawl throws. */
export abstract class PawlError extends Error {
  /** Stable, machine-readable, starts with `PAWL_`. */
  abstract readonly code: string;
  /** Whether what was asked surely did not happen, or may have. */
  readonly outcome: ErrorOutcome = 'definite';
  /** Whether the same call, repeated later unchanged, can succeed. */
  readonly retryable: boolean = false;
  readonly [brand] = true;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Whether `value` is an error of Pawl, whichever copy of the package made it. */
export function isPawlError(value: unknown): value is PawlError {
  return typeof value === 'object' && value !== null && brand in value;
}

/** A parameter is of the wrong type or out of range. */
export class InvalidArgumentError extends PawlError {
  readonly code = 'PAWL_INVALID_ARGUMENT';
  /** The parameter, such as `ttlMs`. */
  readonly parameter: string;

  /** @param expected what would be accepted, in words; @param received what came instead. */
  constructor(parameter: string, expected: string, received: unknown) {
    super(`${parameter} must be ${expected}, but was ${describe(received)}.`);
    this.parameter = parameter;
  }
}

/** The engine cannot keep a session as short as the TTL (or lock-delay) that was asked for. */
export class TtlTooShortError extends PawlError {
  readonly code = 'PAWL_TTL_TOO_SHORT';
  readonly minTtlMs: number;

  constructor(parameter: string, askedMs: number, minTtlMs: number, engine: string) {
    super(
      `${parameter} is ${askedMs} ms, but the ${engine} engine keeps no session shorter than ${minTtlMs} ms; ask for at least that.`,
    );
    this.minTtlMs = minTtlMs;
  }
}

/** The lock is held (or queued for) by others and the caller did not want to wait. */
export class HeldError extends PawlError {
  readonly code = 'PAWL_HELD';
  override readonly retryable = true;
  readonly lock: string;

  constructor(lock: string, detail = 'waitMs is 0, so this was the only attempt') {
    super(`Lock "${lock}" is held by another; ${detail}. Wait longer or try again.`);
    this.lock = lock;
  }
}

/** The wait for a lock ran out. Nothing was left behind at the engine. */
export class AcquireTimeoutError extends PawlError {
  readonly code = 'PAWL_ACQUIRE_TIMEOUT';
  override readonly retryable = true;
  readonly lock: string;
  readonly waitedMs: number;

  constructor(lock: string, waitedMs: number) {
    super(`Lock "${lock}" was not granted within ${waitedMs} ms; it is still held by another.`);
    this.lock = lock;
    this.waitedMs = waitedMs;
  }
}

/** The acquire was aborted by the caller's signal; `cause` is the signal's reason. */
export class AcquireAbortedError extends PawlError {
  readonly code = 'PAWL_ACQUIRE_ABORTED';
  readonly lock: string;

  constructor(lock: string, reason: unknown) {
    super(`The acquire of lock "${lock}" was aborted by its signal.`, { cause: reason });
    this.lock = lock;
  }
}

/** The lock's queue holds as many waiters as the node allows. */
export class QueueFullError extends PawlError {
  readonly code = 'PAWL_QUEUE_FULL';
  override readonly retryable = true;
  readonly lock: string;
  readonly limit: number;

  constructor(lock: string, limit: number) {
    super(
      `Lock "${lock}" already has ${limit} waiters, which is the limit; try again later or raise maxWaiters.`,
    );
    this.lock = lock;
    this.limit = limit;
  }
}

/** The lock is in use as something else: a lock against a semaphore, or another number of permits. */
export class LockShapeError extends PawlError {
  readonly code = 'PAWL_LOCK_SHAPE';
  readonly lock: string;

  constructor(lock: string, present: string, asked: string) {
    super(
      `"${lock}" is in use as ${present}, but was asked for as ${asked}; use one shape for one name, or another name.`,
    );
    this.lock = lock;
  }
}

/** The same request id came with other locks or modes than the first time. */
export class RequestMismatchError extends PawlError {
  readonly code = 'PAWL_REQUEST_MISMATCH';

  constructor(requestId: string) {
    super(
      `Request id "${requestId}" was used before for other locks or modes; use a new id for a new acquire.`,
    );
  }
}

/** A late duplicate: this request id's grant was already released, broken or cancelled. It is no new acquire. */
export class RequestFinishedError extends PawlError {
  readonly code = 'PAWL_REQUEST_FINISHED';

  constructor(requestId: string, how: string) {
    super(`Request id "${requestId}" is finished (${how}); use a new id to acquire again.`);
  }
}

/** The engine did not answer, or answered with an error. Never to be read as "held". */
export class EngineUnavailableError extends PawlError {
  readonly code = 'PAWL_ENGINE_UNAVAILABLE';
  override readonly retryable = true;
  override readonly outcome: ErrorOutcome;

  constructor(message: string, outcome: ErrorOutcome, options?: ErrorOptions) {
    super(message, options);
    this.outcome = outcome;
  }
}

/** Whether an acquire or a release happened could not be found out. The session's end settles it at the latest. */
export class OutcomeUnknownError extends PawlError {
  readonly code = 'PAWL_OUTCOME_UNKNOWN';
  override readonly outcome: ErrorOutcome = 'indefinite';
  override readonly retryable = true;

  constructor(what: string, options?: ErrorOptions) {
    super(
      `It is unknown whether ${what} took effect; repeat it with the same request id, or let the session end.`,
      options,
    );
  }
}

/** The lease is over and its holder did not end it: it expired, was broken, or its session ended. */
export class LeaseLostError extends PawlError {
  readonly code = 'PAWL_LEASE_LOST';
  readonly lock: string;
  readonly token: bigint;

  constructor(lock: string, token: bigint, reason: string, options?: ErrorOptions) {
    super(
      `The lease on "${lock}" (token ${token}) was lost: ${reason}. Another may hold the lock now.`,
      options,
    );
    this.lock = lock;
    this.token = token;
  }
}

/** Safe-stop: no renewal has succeeded for half the TTL. Stop working; the lease may still be released. */
export class LeaseAtRiskError extends PawlError {
  readonly code = 'PAWL_LEASE_AT_RISK';
  readonly lock: string;
  readonly token: bigint;

  constructor(lock: string, token: bigint, sinceMs: number, ttlMs: number, options?: ErrorOptions) {
    super(
      `The lease on "${lock}" (token ${token}) is at risk: no renewal for ${Math.round(sinceMs)} ms of its ${ttlMs} ms TTL. Stop working under it.`,
      options,
    );
    this.lock = lock;
    this.token = token;
  }
}

/** The session ended while the acquire waited or was being made; nothing was granted. */
export class SessionEndedError extends PawlError {
  readonly code = 'PAWL_SESSION_ENDED';
  override readonly retryable = true;

  constructor(detail: string) {
    super(`The session ended: ${detail}. Acquire again; a new session is opened for it.`);
  }
}

/** What was to be released, exported, resumed or broken is not held (any more) under that token. */
export class NotHeldError extends PawlError {
  readonly code = 'PAWL_NOT_HELD';
  readonly lock: string;

  constructor(lock: string, detail: string) {
    super(`Lock "${lock}" is not held by this grant: ${detail}.`);
    this.lock = lock;
  }
}

/** A nested acquire of a lock that this very flow of calls already holds: it would wait for itself. */
export class ReentrantAcquireError extends PawlError {
  readonly code = 'PAWL_REENTRANT_ACQUIRE';
  readonly lock: string;

  constructor(lock: string) {
    super(
      `Lock "${lock}" is already held by the surrounding withLock and would wait for itself; pass { reentrant: true } to share that lease.`,
    );
    this.lock = lock;
  }
}

/** The client, node or engine was closed. */
export class ClosedError extends PawlError {
  readonly code = 'PAWL_CLOSED';

  constructor(what: string) {
    super(`${what} was closed; open a new one.`);
  }
}

/** The server does not know who asks: no token, an unknown one, or one that has expired. */
export class UnauthenticatedError extends PawlError {
  readonly code = 'PAWL_UNAUTHENTICATED';

  constructor(detail: string) {
    super(`The server does not know who asks: ${detail}. Send a valid bearer token.`);
  }
}

/** The token is valid, but its rights do not reach that far. */
export class ForbiddenError extends PawlError {
  readonly code = 'PAWL_FORBIDDEN';

  constructor(right: string, what: string) {
    super(`This token has no right to ${right} ${what}; ask for a token that has it.`);
  }
}

/** A limit of the server is reached. What was asked did not happen. */
export class LimitError extends PawlError {
  readonly code = 'PAWL_LIMIT';
  override readonly retryable = true;
  /** Which limit, such as `sessions`. */
  readonly limitName: string;
  readonly limit: number;

  constructor(limitName: string, limit: number, advice: string) {
    super(`The limit ${limitName} of ${limit} is reached; ${advice}.`);
    this.limitName = limitName;
    this.limit = limit;
  }
}

/** The server failed in a way that is its own fault; its log says how. */
export class ServerFaultError extends PawlError {
  readonly code = 'PAWL_SERVER_FAULT';
  override readonly outcome: ErrorOutcome = 'indefinite';

  constructor() {
    super('The server failed to handle the request; its log says why.');
  }
}

/** An error of a newer server, which this version has no class for. */
export class UnlistedError extends PawlError {
  readonly code: string;
  override readonly outcome: ErrorOutcome;
  override readonly retryable: boolean;

  constructor(code: string, message: string, outcome: ErrorOutcome, retryable: boolean) {
    super(message);
    this.code = code;
    this.outcome = outcome;
    this.retryable = retryable;
  }
}

/** The store's data was written by a newer Pawl. */
export class StoreVersionError extends PawlError {
  readonly code = 'PAWL_STORE_VERSION';

  constructor(where: string, found: number, supported: number) {
    super(`${where} has format ${found}, but this version of Pawl reads up to ${supported}; upgrade Pawl.`);
  }
}

/** The store's data cannot be what Pawl wrote. */
export class StoreCorruptError extends PawlError {
  readonly code = 'PAWL_STORE_CORRUPT';

  constructor(where: string, detail: string, options?: ErrorOptions) {
    super(`${where} is corrupt: ${detail}. Restore it from a backup, then raise the token floor.`, options);
  }
}

/** The store cannot be used as it is: a directory, read-only, no permission, not a database. */
export class StoreUnusableError extends PawlError {
  readonly code = 'PAWL_STORE_UNUSABLE';

  constructor(where: string, detail: string, options?: ErrorOptions) {
    super(`${where} cannot be used: ${detail}.`, options);
  }
}

/** A value in words for a message: short, and with its type where that helps. */
export function describe(value: unknown): string {
  if (typeof value === 'string')
    return `${JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)}`;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number' || typeof value === 'boolean' || value === null || value === undefined) {
    return String(value);
  }
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'symbol') return 'a symbol';
  return Array.isArray(value) ? 'an array' : 'an object';
}
