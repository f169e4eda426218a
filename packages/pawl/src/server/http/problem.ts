import { InvalidArgumentError, type LimitError } from '../../errors.ts';
import { type ErrorMessage, writeError } from '../../protocol/errors.ts';

const STATUS: Readonly<Record<string, number>> = {
  PAWL_INVALID_ARGUMENT: 400,
  PAWL_TTL_TOO_SHORT: 400,
  PAWL_UNAUTHENTICATED: 401,
  PAWL_FORBIDDEN: 403,
  PAWL_HELD: 409,
  PAWL_ACQUIRE_TIMEOUT: 409,
  PAWL_LOCK_SHAPE: 409,
  PAWL_REQUEST_MISMATCH: 409,
  PAWL_REQUEST_FINISHED: 409,
  PAWL_NOT_HELD: 409,
  PAWL_SESSION_ENDED: 410,
  PAWL_LIMIT: 429,
  PAWL_QUEUE_FULL: 429,
  PAWL_ENGINE_UNAVAILABLE: 503,
  PAWL_OUTCOME_UNKNOWN: 503,
  PAWL_CLOSED: 503,
};

/** An error as an answer: `application/problem+json`, with what every error of Pawl has. */
export interface Problem extends ErrorMessage {
  readonly type: 'about:blank';
  readonly title: string;
  readonly status: number;
  readonly detail: string;
}

/** An error that has a status of its own. */
export class HttpError extends Error {
  readonly status: number;
  /** Of 405, the methods that there are. */
  readonly allow: readonly string[];
  override readonly cause: InvalidArgumentError | LimitError;

  constructor(status: number, cause: InvalidArgumentError | LimitError, allow: readonly string[] = []) {
    super(cause.message, { cause });
    this.status = status;
    this.allow = allow;
    this.cause = cause;
  }
}

/**
 * There is nothing at this path, or not by this method.
 *
 * @param allowed the methods by which there is something.
 */
export function notFound(method: string, path: string, allowed: readonly string[] = []): HttpError {
  const cause = new InvalidArgumentError('path', 'one that /openapi.json lists', `${method} ${path}`);
  return new HttpError(allowed.length > 0 ? 405 : 404, cause, allowed);
}

/** The status of an answer with the error of this code. */
export function statusOf(code: string): number {
  return STATUS[code] ?? 500;
}

export function problemOf(error: unknown): Problem {
  const told = writeError(error instanceof HttpError ? error.cause : error);
  const status = error instanceof HttpError ? error.status : statusOf(told.code);
  return { type: 'about:blank', title: told.code, status, detail: told.message, ...told };
}

/** The whole answer with a problem, for a connection that no request came from; it is to be closed then. */
export function problemText(problem: Problem): string {
  const body = JSON.stringify(problem);
  return (
    `HTTP/1.1 ${problem.status} ${problem.code}\r\nContent-Type: application/problem+json\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
  );
}
