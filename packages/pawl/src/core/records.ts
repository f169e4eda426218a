import { StoreCorruptError } from '../errors.ts';
import { parseToken, type Token } from '../token.ts';
import { isBreakRecord, isLockRecord, isRequestRecord, isWaiter } from './record-shapes.ts';

/** How a lock may be held: alone, or together with other shared holders. */
export type Mode = 'exclusive' | 'shared';

/** Who holds or waits, as others may see it: host, process, free text, trace. Only shown, never compared. */
export type Owner = Readonly<Record<string, string>>;

/**
 * A version of the store: every committed write has a higher one than all before it, for ever. The token of a grant
 * is the version of the commit that wrote it, which is why tokens survive the deletion of an idle lock's record.
 */
export type Version = bigint;

/** One grant in force. */
export interface Holder {
  readonly session: string;
  readonly request: string;
  readonly mode: Mode;
  /** Of a semaphore, the permit; in a run of shared holders, their number in it; else 0. */
  readonly slot: number;
  /** `undefined` only between the decision and its commit: then the commit's version becomes the token. */
  readonly token: Token | undefined;
  readonly owner: Owner;
  /** Where news for this holder go. */
  readonly inbox: string;
  /** For how long the lock stays closed after this holder was lost, in ms. */
  readonly lockDelayMs: number;
  /** Stands in for a lost holder while its lock-delay lasts. */
  readonly ghost: boolean;
}

/** One place in a queue. An entry of its own, so that a long queue makes nothing slower. */
export interface Waiter {
  readonly ticket: number;
  readonly session: string;
  readonly request: string;
  readonly mode: Mode;
  readonly owner: Owner;
  readonly inbox: string;
  readonly lockDelayMs: number;
  /** The lock is not handed to it but left free, and it is woken to take it if nobody else does first. */
  readonly barging: boolean;
  /** It waits for several locks at once, so it is woken to look at all of them and never handed one. */
  readonly several: boolean;
}

/** What a lock's record says while the lock is in use. */
export interface LockRecord {
  /** Permits of a semaphore, or `null` for a lock. */
  readonly permits: number | null;
  readonly holders: readonly Holder[];
  readonly nextTicket: number;
  readonly waiting: number;
  /** The number of the next shared holder of the current run; no number serves twice in one run. */
  readonly nextShared: number;
}

/** One lock of a request: what was asked for, and the place in its queue while it waits. */
export interface RequestedLock {
  readonly name: string;
  readonly mode: Mode;
  readonly permits: number | null;
  readonly ticket: number | null;
}

/** What became of a request. `done` remembers that it is over, so that a late duplicate is no new acquire. */
export interface RequestRecord {
  readonly state: 'waiting' | 'held' | 'done';
  readonly locks: readonly RequestedLock[];
  /** As in {@link Holder.lockDelayMs}: whoever buries the session knows from here whether ghosts are needed. */
  readonly lockDelayMs: number;
  /** Where the news for it go: to the node that last asked for it. */
  readonly inbox?: string;
  /** Of a `done` request, how it ended. */
  readonly how: 'released' | 'cancelled' | 'broken' | 'transferred' | null;
  /** The keys of the forced releases of its grants: their records go with this one. */
  readonly breaks?: readonly string[];
}

/** A forced release of a lock. */
export interface BreakRecord {
  readonly token: Token;
  readonly slot: number;
  readonly by: string;
  readonly reason: string;
  /** Wall clock of the node that did it, ms since the epoch; only shown. */
  readonly atMs: number;
  readonly owner: Owner;
}

export function encodeLock(record: LockRecord): string {
  // A new grant has no token yet, and most locks have no other: then there is nothing to write as text.
  if (record.holders.every((holder) => holder.token === undefined)) return JSON.stringify(record);
  const holders = record.holders.map((holder) => ({ ...holder, token: holder.token?.toString() }));
  return JSON.stringify({ ...record, holders });
}

/** Reads a lock's record that was stored at `version`: the token of every grant made by that commit. */
export function decodeLock(key: string, text: string, version: Version): LockRecord {
  const record = parse<LockRecord>(key, text, isLockRecord);
  const holders = record.holders.map((holder) => ({
    ...holder,
    token: holder.token === undefined ? version : readToken(key, holder.token),
  }));
  return { ...record, holders };
}

export function encodeBreak(record: BreakRecord): string {
  return JSON.stringify({ ...record, token: record.token.toString() });
}

export function decodeBreak(key: string, text: string): BreakRecord {
  const record = parse<BreakRecord>(key, text, isBreakRecord);
  return { ...record, token: readToken(key, record.token) };
}

export function encodeWaiter(waiter: Waiter): string {
  return JSON.stringify(waiter);
}

export function decodeWaiter(key: string, text: string): Waiter {
  return parse<Waiter>(key, text, isWaiter);
}

export function encodeRequest(record: RequestRecord): string {
  return JSON.stringify(record);
}

export function decodeRequest(key: string, text: string): RequestRecord {
  return parse<RequestRecord>(key, text, isRequestRecord);
}

function parse<T>(key: string, text: string, fits: (value: Record<string, unknown>) => boolean): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new StoreCorruptError(`The record "${key}"`, 'it is not JSON', { cause });
  }
  if (typeof value !== 'object' || value === null || !fits(value as Record<string, unknown>)) {
    throw new StoreCorruptError(`The record "${key}"`, 'a field is missing or of the wrong type');
  }
  return value as T;
}

function readToken(key: string, text: unknown): Token {
  const token = parseToken(text);
  if (token === undefined) throw new StoreCorruptError(`The record "${key}"`, 'a token is no decimal number');
  return token;
}
