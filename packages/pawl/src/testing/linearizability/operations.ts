import type { Mode } from '../../core/records.ts';
import { describe, InvalidArgumentError } from '../../errors.ts';
import { isToken, type Token } from '../../token.ts';

/** When it was asked for and answered, in ms of one clock that all clients share. It took effect at one moment between. */
export interface OperationTimes {
  /** Who asked, for messages. */
  readonly client: string;
  /** Just before it was asked for. */
  readonly calledAtMs: number;
  /**
   * Just after the answer. Where the outcome is unknown: the time after which it can take effect no more, or `Infinity` where no such time
   * is known. Such an operation may have taken effect, or never.
   */
  readonly returnedAtMs: number;
}

/**
 * An acquire of a lock, or of one slot of a semaphore. Of one that failed, record what it may have left behind: it is of unknown outcome until
 * nothing of it is left (S6). If that is at once, and it never came to stand in a queue, leave it out.
 */
export interface AcquireOperation extends OperationTimes {
  readonly kind: 'acquire';
  readonly lock: string;
  readonly session: string;
  /** Exclusive unless set. */
  readonly mode?: Mode;
  /** Of a semaphore, how many slots it has: the same for all its acquires. Not set for a lock. */
  readonly permits?: number;
  /** Of a semaphore, which slot was granted. */
  readonly slot?: number;
  /** Whether it queues where it cannot be granted at once. If not set, it was one attempt. */
  readonly waits?: boolean;
  /** Whether it asks for other locks too, all or nothing: it may wait for this one while this one is free. */
  readonly several?: boolean;
  /** Whether it may pass others that barge. */
  readonly barging?: boolean;
  /**
   * The token that was granted, or `refused`. One attempt is refused where somebody else holds, or waits before it. One that waits is refused once
   * its time is over, and has waited: at some moment it could not be granted. Of several locks, a refusal is that of the lock that was named.
   */
  readonly reply: Token | 'refused' | 'unknown';
  /**
   * Of one that waited and was refused: until when it may have left something behind, a place in the queue or a grant that is given back (S6).
   * `Infinity` where that is not known. Nothing once it returned, unless set.
   */
  readonly leftAtMs?: number;
}

/** A release. Of one that was repeated, count the whole as one operation. */
export interface ReleaseOperation extends OperationTimes {
  readonly kind: 'release';
  readonly lock: string;
  readonly session: string;
  /** `unknown` where it gives back whatever an acquire of unknown outcome was granted. */
  readonly token: Token | 'unknown';
  /** Of a semaphore, which slot is given back: slots can have equal tokens. Any unless set. */
  readonly slot?: number;
  /** `notHeld` where it was told that the session does not hold the lock with this token. */
  readonly reply: 'released' | 'notHeld' | 'unknown';
}

/**
 * A session's end, which is final; what the session holds is free some time after it, since it has to be cleaned up and may have a lock-delay.
 * Nobody calls it: the engine decides at some time from the last renewal on, and all is free within the TTL, the lock-delay and what it takes to
 * notice. Where `returnedAtMs` is `Infinity` it may never have come.
 */
export interface EndOperation extends OperationTimes {
  readonly kind: 'end';
  readonly session: string;
}

/** A write at a resource behind a fence, or the fence raised. */
export interface FencedOperation extends OperationTimes {
  readonly kind: 'write' | 'raise';
  readonly resource: string;
  readonly token: Token;
  /** `refused` where the fence has honoured a higher token. */
  readonly reply: 'accepted' | 'refused' | 'unknown';
}

export type LockOperation = AcquireOperation | ReleaseOperation | EndOperation;
export type Operation = LockOperation | FencedOperation;

/** Whether it took effect for certain. */
export function isCertain(operation: Operation): boolean {
  return operation.kind === 'end' ? operation.returnedAtMs !== Infinity : operation.reply !== 'unknown';
}

/** @throws InvalidArgumentError where this cannot be what somebody saw. */
export function checkOperation(operation: Operation): void {
  const { kind, calledAtMs, returnedAtMs } = operation;
  checkTimes(kind, calledAtMs, returnedAtMs);
  if (returnedAtMs === Infinity && kind !== 'end' && isCertain(operation)) {
    throw new InvalidArgumentError('returnedAtMs', `the time of the reply to the ${kind}`, returnedAtMs);
  }
  if (kind === 'acquire') checkAcquire(operation);
  else if (kind === 'release') {
    checkReply(operation.reply, ['released', 'notHeld', 'unknown']);
    checkToken(operation.token, true);
    checkSlot(operation.slot);
  } else if (kind !== 'end') {
    checkReply(operation.reply, ['accepted', 'refused', 'unknown']);
    checkToken(operation.token, false);
  }
}

function checkTimes(kind: string, calledAtMs: number, returnedAtMs: number): void {
  if (!['acquire', 'release', 'end', 'write', 'raise'].includes(kind)) {
    throw new InvalidArgumentError('kind', '"acquire", "release", "end", "write" or "raise"', kind);
  }
  if (!Number.isFinite(calledAtMs))
    throw new InvalidArgumentError('calledAtMs', 'a finite number', calledAtMs);
  if (!(returnedAtMs >= calledAtMs)) {
    throw new InvalidArgumentError('returnedAtMs', `no earlier than calledAtMs, ${calledAtMs}`, returnedAtMs);
  }
}

function checkAcquire({
  reply,
  mode = 'exclusive',
  permits,
  slot,
  returnedAtMs,
  leftAtMs = returnedAtMs,
}: AcquireOperation): void {
  if (!(leftAtMs >= returnedAtMs)) {
    throw new InvalidArgumentError('leftAtMs', `no earlier than returnedAtMs, ${returnedAtMs}`, leftAtMs);
  }
  checkReply(reply, ['refused', 'unknown'], true);
  if (mode !== 'exclusive' && (mode !== 'shared' || permits !== undefined)) {
    const expected = permits === undefined ? '"exclusive" or "shared"' : '"exclusive" for a semaphore';
    throw new InvalidArgumentError('mode', expected, mode);
  }
  if (permits !== undefined && !(Number.isSafeInteger(permits) && permits >= 1)) {
    throw new InvalidArgumentError('permits', 'a whole number from 1 up', permits);
  }
  checkSlot(slot);
  if (permits !== undefined && slot === undefined && typeof reply === 'bigint') {
    throw new InvalidArgumentError('slot', 'the slot of the semaphore that was granted', slot);
  }
}

function checkSlot(slot: unknown): void {
  if (slot === undefined || (Number.isSafeInteger(slot) && (slot as number) >= 0)) return;
  throw new InvalidArgumentError('slot', 'a whole number from 0 up', slot);
}

function checkReply(reply: unknown, words: readonly string[], orToken = false): void {
  if (words.includes(reply as string) || (orToken && isToken(reply))) return;
  const expected = words.map((word) => `"${word}"`).join(', ');
  throw new InvalidArgumentError('reply', `one of ${expected}${orToken ? ' or a token' : ''}`, reply);
}

function checkToken(token: unknown, orUnknown: boolean): void {
  if (isToken(token) || (orUnknown && token === 'unknown')) return;
  throw new InvalidArgumentError('token', `a token${orUnknown ? ' or "unknown"' : ''}`, token);
}

/** One operation in words. */
export function describeOperation(operation: Operation): string {
  const { client, calledAtMs, returnedAtMs } = operation;
  const until = returnedAtMs === Infinity ? 'open' : `${returnedAtMs.toFixed(1)} ms`;
  return `${client} ${what(operation)} (${calledAtMs.toFixed(1)} ms to ${until})`;
}

function what(operation: Operation): string {
  switch (operation.kind) {
    case 'acquire':
      return describeAcquire(operation);
    case 'release':
      return `release of ${operation.token}${ofSlot(operation)} → ${operation.reply}`;
    case 'end':
      return `end of session ${describe(operation.session)}`;
    default:
      return `${operation.kind} with ${operation.token} → ${operation.reply}`;
  }
}

function describeAcquire(operation: AcquireOperation): string {
  const { reply, mode, waits } = operation;
  const asked = mode === 'shared' ? 'shared acquire' : 'acquire';
  if (typeof reply === 'bigint') return `${asked} → token ${reply}${ofSlot(operation)}`;
  return `${asked} → ${reply === 'refused' && waits ? 'timed out' : reply}`;
}

function ofSlot({ slot }: { readonly slot?: number }): string {
  return slot === undefined ? '' : ` of slot ${slot}`;
}
