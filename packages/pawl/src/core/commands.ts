import type { Token } from '../token.ts';
import { requestKey } from './names.ts';
import type { Holder, Mode, Owner } from './records.ts';

/** One lock that an acquire asks for. `permits` is the size of a semaphore, or `null` for a lock. */
export interface AskedLock {
  readonly name: string;
  readonly mode: Mode;
  readonly permits: number | null;
}

/** Identifies one acquire: repeated with the same pair it is the same acquire (S5). */
export interface RequestId {
  readonly session: string;
  readonly request: string;
}

/** A request, with the key of its record where that was made before. */
export interface KeyedRequest extends RequestId {
  readonly key?: string;
}

/** Asks for one lock, or several at once, all or nothing. */
export interface AcquireCommand extends KeyedRequest {
  readonly kind: 'acquire';
  readonly locks: readonly AskedLock[];
  /** Whether to queue where the lock is not free. */
  readonly wait: boolean;
  readonly owner: Owner;
  readonly inbox: string;
  readonly lockDelayMs: number;
  readonly barging: boolean;
}

/** Gives all locks of a request back. */
export interface ReleaseCommand extends KeyedRequest {
  readonly kind: 'release';
  readonly names: readonly string[];
  /** The tokens that were granted, one for each name: an old grant's release never touches a newer holder (S4). */
  readonly tokens: readonly Token[];
  /** Do not remember the request: nobody can send it again. */
  readonly forget: boolean;
}

/** Ends an acquire whose caller gave up: leaves the queue, or gives the grant back if that won the race (S6). */
export interface CancelCommand extends KeyedRequest {
  readonly kind: 'cancel';
  readonly names: readonly string[];
  /** Of the node that cancels: another at which the request waits is told. */
  readonly inbox: string;
  readonly forget: boolean;
}

/** Removes one request of a session that has ended. */
export interface BuryCommand extends RequestId {
  readonly kind: 'bury';
  readonly names: readonly string[];
  /** A session that the node opened to last as long as the lock-delay, or `null` for none. */
  readonly ghost: string | null;
}

/** Takes a grant away from its holder by force. */
export interface BreakCommand extends RequestId {
  readonly kind: 'break';
  readonly name: string;
  readonly token: Token;
  readonly reason: string;
  readonly by: string;
  readonly atMs: number;
}

/** Moves a grant, token and all, to another session and request. */
export interface TransferCommand extends KeyedRequest {
  readonly kind: 'transfer';
  readonly names: readonly string[];
  readonly tokens: readonly Token[];
  readonly to: RequestId;
  readonly owner: Owner;
  readonly inbox: string;
  /** As in {@link ReleaseCommand.forget}, for the request that loses the grant. */
  readonly forget: boolean;
}

/** Looks whether whoever is first in line can enter: after endings, and to go on with a long run of shared waiters. */
export interface PromoteCommand {
  readonly kind: 'promote';
  readonly name: string;
}

export type Command =
  | AcquireCommand
  | ReleaseCommand
  | CancelCommand
  | BuryCommand
  | BreakCommand
  | TransferCommand
  | PromoteCommand;

/** One lock that was granted. A token of `undefined` is the version of the commit that carries the grant. */
export interface Grant {
  readonly name: string;
  readonly mode: Mode;
  readonly slot: number;
  readonly token: Token | undefined;
}

export type AcquireOutcome =
  | { readonly kind: 'granted'; readonly grants: readonly Grant[] }
  /** In the queue, behind `ahead` others at the time of joining (of several locks, the longest queue). */
  | { readonly kind: 'queued'; readonly ahead: number }
  | {
      readonly kind: 'held';
      readonly name: string;
      readonly holders: readonly Holder[];
      readonly waiting: number;
    }
  | { readonly kind: 'finished'; readonly how: string }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'sessionEnded' }
  | {
      readonly kind: 'shape';
      readonly name: string;
      readonly present: number | null;
      readonly asked: number | null;
    }
  | { readonly kind: 'queueFull'; readonly name: string; readonly limit: number };

export type ReleaseOutcome =
  | { readonly kind: 'released' }
  /** A repeated release of a grant that was released before. */
  | { readonly kind: 'alreadyReleased' }
  | { readonly kind: 'notHeld' };

export type CancelOutcome = { readonly kind: 'cancelled'; readonly wasGranted: boolean };
export type BuryOutcome = { readonly kind: 'buried' };
export type BreakOutcome = { readonly kind: 'broken'; readonly owner: Owner } | { readonly kind: 'notHeld' };
export type TransferOutcome =
  | { readonly kind: 'transferred'; readonly grants: readonly Grant[] }
  | { readonly kind: 'notHeld' };
/** `unfinished`: more of the queue may enter, but it was not loaded; promote once more. */
export type PromoteOutcome = { readonly kind: 'promoted' };

export interface OutcomeByKind {
  acquire: AcquireOutcome;
  release: ReleaseOutcome;
  cancel: CancelOutcome;
  bury: BuryOutcome;
  break: BreakOutcome;
  transfer: TransferOutcome;
  promote: PromoteOutcome;
}

export type OutcomeOf<C extends Command> = OutcomeByKind[C['kind']];
export type Outcome = OutcomeByKind[keyof OutcomeByKind];

/** News that an operation brings to an inbox once it is committed. */
export type News =
  /** All locks of the request are granted. A token of `undefined` is the version of the commit. */
  | { readonly kind: 'granted'; readonly to: RequestId; readonly grants: readonly Grant[] }
  /** First in line, and the lock may be free: acquire once more with the same request id. */
  | { readonly kind: 'claim'; readonly to: RequestId }
  /** Another node has ended the acquire: it waits no more. */
  | { readonly kind: 'cancelled'; readonly to: RequestId }
  /** The grant on `name` was taken away by force. */
  | { readonly kind: 'broken'; readonly to: RequestId; readonly name: string; readonly reason: string };

/** The names of the locks that a command reads and may write. */
export function namesOf(command: Command): readonly string[] {
  switch (command.kind) {
    case 'acquire':
      return command.locks.map((lock) => lock.name);
    case 'break':
    case 'promote':
      return [command.name];
    default:
      return command.names;
  }
}

/** Where the record of a request stands. */
export function keyOf({ session, request, key }: KeyedRequest): string {
  return key ?? requestKey(session, request);
}

/** The requests whose records a command reads and may write. */
export function requestsOf(command: Command): readonly KeyedRequest[] {
  if (command.kind === 'promote') return [];
  return command.kind === 'transfer' ? [command, command.to] : [command];
}
