import type { Token } from '../token.ts';

/*
 * Fences work with the tokens of any lock, so they know nothing of Pawl's other errors; these look the same from outside.
 */

const brand = Symbol.for('pawl.error');

/** The base of every error that a fence throws. What was asked surely did not happen, unless `outcome` says otherwise. */
export abstract class FenceError extends Error {
  /** Stable, machine-readable, starts with `PAWL_`. */
  abstract readonly code: string;
  readonly outcome: 'definite' | 'indefinite' = 'definite';
  readonly retryable: boolean = false;
  /** The resource that is fenced. */
  readonly resource: string;
  readonly [brand] = true;

  constructor(resource: string, message: string, options?: ErrorOptions) {
    super(message, options);
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

/** A bare token is higher than the highest honoured by more than the fence's `maxJump`: nothing vouches for it. */
export class TokenJumpError extends FenceError {
  readonly code = 'PAWL_TOKEN_JUMP';
  readonly token: Token;
  /** `undefined` where no token was honoured before. */
  readonly highest: Token | undefined;

  constructor(resource: string, token: Token, highest: Token | undefined) {
    super(
      resource,
      `"${resource}" refused token ${token}, since it is higher than the highest honoured (${highest ?? 'none'}) by more than maxJump. ` +
        'Pass a signed sequencer, which may jump, or raise maxJump.',
    );
    this.token = token;
    this.highest = highest;
  }
}

/** A sequencer was not signed by a key that the fence knows, was changed, has expired, or is for another lock. */
export class InvalidSequencerError extends FenceError {
  readonly code = 'PAWL_INVALID_SEQUENCER';

  constructor(resource: string, reason: string) {
    super(resource, `"${resource}" refused a sequencer: ${reason}.`);
  }
}

/** Other processes kept the resource busy for longer than this one was willing to wait. Nothing was written. */
export class FenceBusyError extends FenceError {
  readonly code = 'PAWL_FENCE_BUSY';
  override readonly retryable = true;

  constructor(resource: string, waitedMs: number, options?: ErrorOptions) {
    super(
      resource,
      `"${resource}" was kept busy by other writers for ${waitedMs} ms. Try again; if it stays so, one of them is stopped in the middle of a write.`,
      options,
    );
  }
}

/** The state of the fences was written by a newer Pawl. */
export class FenceVersionError extends FenceError {
  readonly code = 'PAWL_FENCE_VERSION';
  readonly found: number;
  readonly known: number;

  constructor(resource: string, found: number, known: number) {
    super(
      resource,
      `The fence of "${resource}" keeps its state in format ${found}, and this Pawl knows up to ${known}: a newer Pawl made it. Upgrade this one.`,
    );
    this.found = found;
    this.known = known;
  }
}

/** Redis refused one command of a fenced batch. Those before it are in effect, those after it were not run. */
export class FencedCommandError extends FenceError {
  readonly code = 'PAWL_FENCED_COMMAND';
  override readonly outcome: 'definite' | 'indefinite';
  /** Which command it was, from 0. */
  readonly index: number;

  constructor(resource: string, index: number, command: string, said: string) {
    const before = index === 0 ? 'nothing was written' : `what the ${index} before it did stays`;
    const advice = /same slot|non local key/.test(said)
      ? ' In a cluster all keys of the batch must be in the slot of the fence: write the name of the resource, or its hash tag, into each as {tag}.'
      : '';
    super(
      resource,
      `Redis refused command ${index} (${command}) of a fenced batch on "${resource}": ${said}; ${before}.${advice}`,
    );
    this.index = index;
    this.outcome = index === 0 ? 'definite' : 'indefinite';
  }
}

/** Another is at work on it at this moment, or was until it crashed a short while ago. */
export class OnceRunningError extends FenceError {
  readonly code = 'PAWL_ONCE_RUNNING';
  override readonly retryable = true;

  constructor(key: string) {
    super(key, `"${key}" is being done by another at this moment; ask again later for what came of it.`);
  }
}

/** It was begun, and whoever began it did not say what came of it. Whether it happened has to be found out elsewhere. */
export class OnceUnfinishedError extends FenceError {
  readonly code = 'PAWL_ONCE_UNFINISHED';
  /** Names the run that was begun, for `store.forget(key, run)`. */
  readonly run: string;

  constructor(key: string, run: string) {
    super(
      key,
      `"${key}" was begun by run ${run}, which crashed or takes longer than runMs, so it may have happened or not. Find out, and ` +
        'record it with store.finish, or have it done again with store.forget.',
    );
    this.run = run;
  }
}

/** It happened, but could not be recorded; `cause` says why. Another call sees it as begun and not finished. */
export class OnceUnrecordedError extends FenceError {
  readonly code = 'PAWL_ONCE_UNRECORDED';
  override readonly outcome = 'indefinite';
  /** What came of it. */
  readonly value: unknown;

  constructor(key: string, value: unknown, cause: unknown) {
    super(key, `"${key}" was done, but its record was not written: ${messageOf(cause)}`, { cause });
    this.value = value;
  }
}

/** Others changed it each time between the read and the write. Nothing was written. */
export class ContentionError extends FenceError {
  readonly code = 'PAWL_CONTENTION';
  override readonly retryable = true;
  readonly attempts: number;

  constructor(resource: string, attempts: number) {
    super(
      resource,
      `"${resource}" was changed by others in each of ${attempts} attempts between the read and the write. Try again later, allow more attempts, or use a lock.`,
    );
    this.attempts = attempts;
  }
}

/** A server gave an answer that a conditional write cannot go on from. */
export class UnexpectedResponseError extends FenceError {
  readonly code = 'PAWL_UNEXPECTED_RESPONSE';
  override readonly outcome: 'definite' | 'indefinite';
  readonly status: number;

  constructor(resource: string, method: string, status: number) {
    super(resource, `${method} of "${resource}" was answered with ${status}.`);
    this.status = status;
    // A server that failed may have written before it did.
    this.outcome = method !== 'GET' && status >= 500 ? 'indefinite' : 'definite';
  }
}

/**
 * It is not known whether the write happened: its answer was lost, and what others wrote since hides it. If it did, it was in order, and before
 * theirs.
 */
export class WriteUnknownError extends FenceError {
  readonly code = 'PAWL_WRITE_UNKNOWN';
  override readonly outcome = 'indefinite';

  constructor(resource: string, cause: unknown) {
    super(
      resource,
      `It is not known whether "${resource}" was written: the answer was lost, and others have written since (${messageOf(cause)}). ` +
        'Read what is there before you write again.',
      { cause },
    );
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
