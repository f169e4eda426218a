import {
  AcquireTimeoutError,
  ClosedError,
  EngineUnavailableError,
  type ErrorOutcome,
  ForbiddenError,
  HeldError,
  InvalidArgumentError,
  isPawlError,
  LeaseLostError,
  LimitError,
  LockShapeError,
  NotHeldError,
  OutcomeUnknownError,
  type PawlError,
  QueueFullError,
  RequestFinishedError,
  RequestMismatchError,
  ServerFaultError,
  SessionEndedError,
  StoreCorruptError,
  StoreUnusableError,
  StoreVersionError,
  TtlTooShortError,
  UnauthenticatedError,
  UnlistedError,
} from '../errors.ts';
import { parseToken } from '../token.ts';

/** An error as JSON: what every error has, and the fields of its class. */
export interface ErrorMessage {
  readonly code: string;
  readonly message: string;
  readonly outcome: ErrorOutcome;
  readonly retryable: boolean;
  readonly [field: string]: unknown;
}

/** What an error may have besides. */
const FIELDS = ['lock', 'limit', 'limitName', 'parameter', 'minTtlMs', 'waitedMs', 'token'] as const;

/** An error to tell the other side. What is no error of Pawl is a fault of the server, of which nothing is told. */
export function writeError(error: unknown): ErrorMessage {
  const known = isPawlError(error) ? error : new ServerFaultError();
  const { code, message, outcome, retryable } = known;
  const written: Record<string, unknown> = {};
  for (const field of FIELDS) {
    const value = (known as unknown as Record<string, unknown>)[field];
    if (value !== undefined) written[field] = typeof value === 'bigint' ? value.toString() : value;
  }
  return { ...written, code, message, outcome, retryable };
}

/** The error that the other side told of: of the same class, with the same message and fields. */
export function readError(value: unknown): PawlError {
  const told = (typeof value === 'object' && value !== null ? value : {}) as Partial<ErrorMessage>;
  const code = text(told.code);
  const message = text(told.message);
  const outcome = told.outcome === 'definite' ? 'definite' : 'indefinite';
  const make = Object.hasOwn(MAKERS, code) ? MAKERS[code] : undefined;
  if (make === undefined) return new UnlistedError(code, message, outcome, told.retryable === true);
  const error = make();
  const fields = Object.fromEntries(
    FIELDS.flatMap((field) => (field in error ? [[field, told[field]]] : [])),
  );
  if ('token' in fields) fields.token = parseToken(fields.token) ?? 0n;
  const stack = error.stack?.replace(/^.*$/m, `${error.name}: ${message}`);
  return Object.assign(error, fields, { message, stack, outcome, retryable: told.retryable === true });
}

/** Makes an error of each class; its fields are then put in place. */
const MAKERS: Readonly<Record<string, () => PawlError>> = {
  PAWL_INVALID_ARGUMENT: () => new InvalidArgumentError('', '', ''),
  PAWL_TTL_TOO_SHORT: () => new TtlTooShortError('', 0, 0, ''),
  PAWL_HELD: () => new HeldError(''),
  PAWL_ACQUIRE_TIMEOUT: () => new AcquireTimeoutError('', 0),
  PAWL_QUEUE_FULL: () => new QueueFullError('', 0),
  PAWL_LOCK_SHAPE: () => new LockShapeError('', '', ''),
  PAWL_REQUEST_MISMATCH: () => new RequestMismatchError(''),
  PAWL_REQUEST_FINISHED: () => new RequestFinishedError('', ''),
  PAWL_ENGINE_UNAVAILABLE: () => new EngineUnavailableError('', 'indefinite'),
  PAWL_OUTCOME_UNKNOWN: () => new OutcomeUnknownError(''),
  PAWL_LEASE_LOST: () => new LeaseLostError('', 0n, ''),
  PAWL_SESSION_ENDED: () => new SessionEndedError(''),
  PAWL_NOT_HELD: () => new NotHeldError('', ''),
  PAWL_CLOSED: () => new ClosedError(''),
  PAWL_STORE_VERSION: () => new StoreVersionError('', 0, 0),
  PAWL_STORE_CORRUPT: () => new StoreCorruptError('', ''),
  PAWL_STORE_UNUSABLE: () => new StoreUnusableError('', ''),
  PAWL_UNAUTHENTICATED: () => new UnauthenticatedError(''),
  PAWL_FORBIDDEN: () => new ForbiddenError('', ''),
  PAWL_LIMIT: () => new LimitError('', 0, ''),
  PAWL_SERVER_FAULT: () => new ServerFaultError(),
};

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
