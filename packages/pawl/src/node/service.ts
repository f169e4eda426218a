import type {
  AcquireOutcome,
  AskedLock,
  BreakOutcome,
  CancelOutcome,
  ReleaseOutcome,
  RequestId,
  TransferOutcome,
} from '../core/commands.ts';
import type { BreakRecord, Mode, Owner } from '../core/records.ts';
import type { EngineGuarantees } from '../engines/engine.ts';
import type { Token } from '../token.ts';

/** A lock that was granted, with its token. */
export interface GrantedLock {
  readonly name: string;
  readonly mode: Mode;
  readonly slot: number;
  readonly token: Token;
  /** The same, signed, where whoever granted it signs. */
  readonly sequencer?: string;
}

/** Signs a grant, so that a resource can tell who gave out its token; `signSequencer` of `pawl/fences/sequencer` does. */
export type SignGrant = (grant: {
  readonly lock: string;
  readonly mode: Mode;
  readonly slot: number;
  readonly token: Token;
}) => string;

/** What became of an acquire, with tokens in place. */
export type AcquireAnswer =
  | Exclude<AcquireOutcome, { kind: 'granted' }>
  | { readonly kind: 'granted'; readonly grants: readonly GrantedLock[] };

export type TransferAnswer =
  | Exclude<TransferOutcome, { kind: 'transferred' }>
  | { readonly kind: 'transferred'; readonly grants: readonly GrantedLock[] };

export interface AcquireOptions {
  readonly wait: boolean;
  readonly owner: Owner;
  /** 0, or at least the engine's shortest session. */
  readonly lockDelayMs: number;
  readonly barging: boolean;
}

/** What a session's holder is told without asking. Hints: each may come late, twice or never. */
export type SessionEvent =
  | { readonly kind: 'granted'; readonly request: string; readonly grants: readonly GrantedLock[] }
  | { readonly kind: 'broken'; readonly request: string; readonly name: string; readonly reason: string };

/** One lock that a session believes to hold. */
export interface Hold {
  readonly request: string;
  readonly name: string;
}

export interface KeepAliveAnswer {
  readonly alive: boolean;
  /** Of the holds that were asked about, those that the session does not have (any more). */
  readonly gone: readonly Hold[];
}

/** One holder as others may see it. */
export interface HolderState {
  readonly token: Token;
  readonly slot: number;
  readonly mode: Mode;
  readonly owner: Owner;
  /** The lock stays closed because this holder was lost; nobody works under it. */
  readonly lockDelay: boolean;
}

/** A lock as it is now. An idle lock has no holders and nobody waits. */
export interface LockState {
  readonly name: string;
  /** Permits of a semaphore, `null` for a lock or an idle name. */
  readonly permits: number | null;
  readonly holders: readonly HolderState[];
  readonly waiting: number;
  /** The first in line, in order. */
  readonly waiters: readonly { readonly mode: Mode; readonly owner: Owner }[];
  /**
   * The last forced release, if there was one; of a semaphore that of the highest token, while its holder lives.
   */
  readonly lastBreak: BreakRecord | null;
}

/** Which grant to break: a token, and of shared holders, who all have the same, the slot. */
export interface BreakTarget {
  readonly name: string;
  readonly token: Token;
  readonly slot?: number | undefined;
}

/**
 * What a client needs of a node, in the same process or behind a server. Every method may be repeated after a lost
 * reply: sessions, requests and tokens name what is meant.
 */
export interface LockService {
  readonly guarantees: EngineGuarantees;
  /** @returns the new session's id. */
  openSession(ttlMs: number): Promise<string>;
  /** Prolongs the session by its whole TTL and compares what it believes to hold with what the engine says. */
  keepAlive(session: string, holds: readonly Hold[]): Promise<KeepAliveAnswer>;
  /** Gives back all that the session holds, without lock-delay, and ends it. */
  closeSession(session: string): Promise<void>;
  acquire(id: RequestId, locks: readonly AskedLock[], options: AcquireOptions): Promise<AcquireAnswer>;
  release(
    id: RequestId,
    grants: readonly { name: string; token: Token }[],
    forget: boolean,
  ): Promise<ReleaseOutcome>;
  cancel(id: RequestId, names: readonly string[], forget: boolean): Promise<CancelOutcome>;
  transfer(
    from: RequestId,
    grants: readonly { name: string; token: Token }[],
    to: RequestId,
    owner: Owner,
    forget: boolean,
  ): Promise<TransferAnswer>;
  breakHold(target: BreakTarget, reason: string, by: string): Promise<BreakOutcome>;
  inspect(name: string): Promise<LockState>;
  /** Locks in use whose name starts with `prefix`, after the name `after`, in the order of their encoded names. */
  list(prefix: string, limit: number, after?: string): Promise<readonly LockState[]>;
  /** How many wait ahead of this waiter, or `null` where it does not wait. */
  position(id: RequestId, name: string): Promise<number | null>;
  /** @returns a function that stops it. */
  listen(session: string, listener: (event: SessionEvent) => void): () => void;
  close(): Promise<void>;
}
