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

/** An acquire in exclusive mode. One that failed and left nothing behind (S6) is no operation: leave it out. */
export interface AcquireOperation extends OperationTimes {
  readonly kind: 'acquire';
  readonly lock: string;
  readonly session: string;
  /**
   * The token that was granted; `refused` where somebody held the lock. Leave out refusals for another reason: that others queue for it, or
   * that it is in its lock-delay.
   */
  readonly reply: Token | 'refused' | 'unknown';
}

/** A release. Of one that was repeated, count the whole as one operation. */
export interface ReleaseOperation extends OperationTimes {
  readonly kind: 'release';
  readonly lock: string;
  readonly session: string;
  /** `unknown` where it gives back whatever an acquire of unknown outcome was granted. */
  readonly token: Token | 'unknown';
  /** `notHeld` where it was told that the session does not hold the lock with this token. */
  readonly reply: 'released' | 'notHeld' | 'unknown';
}

/**
 * A session's end, which frees what the session holds, and is final. Nobody calls it: the engine decides at some time from the last renewal
 * on, within the TTL and what it takes to notice. Where `returnedAtMs` is `Infinity` it may never have come.
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
  if (kind === 'acquire') checkReply(operation.reply, ['refused', 'unknown'], true);
  else if (kind === 'release') {
    checkReply(operation.reply, ['released', 'notHeld', 'unknown']);
    checkToken(operation.token, true);
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
      return `acquire → ${typeof operation.reply === 'bigint' ? `token ${operation.reply}` : operation.reply}`;
    case 'release':
      return `release of ${operation.token} → ${operation.reply}`;
    case 'end':
      return `end of session ${describe(operation.session)}`;
    default:
      return `${operation.kind} with ${operation.token} → ${operation.reply}`;
  }
}
