import type { Token } from '../token.ts';

/*
 * Fences work with the tokens of any lock, so they know nothing of Pawl's other errors; these look the same from outside.
 */

const brand = Symbol.for('pawl.error');

/** The base of every error that a fence throws. What was asked surely did not happen. */
export abstract class FenceError extends Error {
  /** Stable, machine-readable, starts with `PAWL_`. */
  abstract readonly code: string;
  readonly outcome = 'definite';
  readonly retryable = false;
  /** The resource that is fenced. */
  readonly resource: string;
  readonly [brand] = true;

  constructor(resource: string, message: string) {
    super(message);
    this.name = new.target.name;
    this.resource = resource;
  }
}

/** The token is lower than the highest that the resource has honoured: its holder comes too late. */
export class StaleTokenError extends FenceError {
  readonly code = 'PAWL_STALE_TOKEN';
  readonly token: Token;
  readonly highest: Token;

  constructor(resource: string, token: Token, highest: Token) {
    super(
      resource,
      `"${resource}" refused token ${token}, since it has honoured ${highest}: another holder came after this one. ` +
        `Stop, and acquire the lock again. If every holder is refused since the lock's store was restored from a backup, raise its tokens above ${highest}.`,
    );
    this.token = token;
    this.highest = highest;
  }
}

/** There is no token. Whoever has none has no lock, so the write is refused. */
export class MissingTokenError extends FenceError {
  readonly code = 'PAWL_MISSING_TOKEN';

  constructor(resource: string) {
    super(resource, `"${resource}" is fenced, but no token was given; pass the lease, or its token.`);
  }
}

/** What was given as a token is none. */
export class InvalidTokenError extends FenceError {
  readonly code = 'PAWL_INVALID_TOKEN';

  constructor(resource: string, received: string) {
    super(
      resource,
      `"${resource}" was given ${received} as a token; a token is a bigint from 1 to 2^63 - 1 (use parseToken on its decimal text).`,
    );
  }
}

/** The fence was used in a way in which check and effect could not be one step. */
export class FenceUsageError extends FenceError {
  readonly code = 'PAWL_FENCE_USAGE';
}
