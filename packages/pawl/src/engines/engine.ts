import type { Version } from '../core/records.ts';
import type { ConditionalWrite } from '../core/write.ts';

export type { Version } from '../core/records.ts';
export type { ConditionalWrite, Guard, Wake } from '../core/write.ts';

/** One stored value. */
export interface Entry {
  readonly key: string;
  readonly value: string;
  /** Of the write that put this value. */
  readonly version: Version;
}

/** Keys to read, and for each prefix its first `limit` entries in the order of their keys' bytes. */
export interface ReadQuery {
  readonly keys: readonly string[];
  readonly ranges: readonly { readonly prefix: string; readonly limit: number }[];
}

export interface ReadResult {
  /** The entries of {@link ReadQuery.keys} that exist, by key. */
  readonly entries: ReadonlyMap<string, Entry>;
  /** One list for each of {@link ReadQuery.ranges}, in their order. */
  readonly ranges: readonly (readonly Entry[])[];
}

/** What became of one conditional write of a batch. */
export type CommitResult =
  /**
   * It happened. `version` is higher than that of every write before it, except that a write without puts may repeat one, and that
   * writes of one batch that touch no common key may share one.
   */
  | { readonly kind: 'committed'; readonly version: Version }
  /** Nothing of it happened, since a guard does not hold; the keys that differ. */
  | { readonly kind: 'conflict'; readonly keys: readonly string[] }
  /** Nothing of it happened, since these sessions have ended (or never were). */
  | { readonly kind: 'sessionsEnded'; readonly sessions: readonly string[] };

/** What an engine promises, as data: the code, the CLI and the docs show the same table. */
export interface EngineGuarantees {
  readonly engine: string;
  /** What it survives, in words. */
  readonly survives: string;
  readonly expiryDecidedBy: string;
  readonly tokensRestOn: string;
  readonly wakeUp: string;
  /** Whether a commit is on stable storage before it is answered (S9). */
  readonly durable: boolean;
  readonly mutualExclusion: 'yes' | 'clock-dependent';
  /** On every engine: no lock service can stop the late write of a paused holder. */
  readonly needsFencing: true;
  /** The shortest session it can keep, in ms. */
  readonly minTtlMs: number;
  /** How long after a session's end the feed tells of it at the latest, in ms (L1). */
  readonly sweepMs: number;
}

/** One thing about a store as it is run, and what it means for the locks. */
export interface Finding {
  /** The setting and its value, such as `appendfsync everysec`. */
  readonly setting: string;
  /** What can be lost by it, or `null` where it is as it should be. */
  readonly warning: string | null;
}

/**
 * The contract of an engine: a store of conditional writes, the liveness of sessions, and wake-ups. No lock logic;
 * everything about locks stands in `core/`, once for all engines. `pawl/testing` has the suite that every engine passes.
 *
 * An engine method rejects with `EngineUnavailableError` where the store cannot be reached, `definite` if what was asked
 * surely did not happen. It never answers "conflict" or "ended" because it does not know. A query or a batch that is larger than the store
 * takes is an `InvalidArgumentError`, and nothing of it happens: the caller may ask for less at once.
 *
 * Not in the contract, on purpose: clocks (no caller's time decides anything), locks, queues, retries.
 */
export interface Engine {
  readonly guarantees: EngineGuarantees;
  /** How many commits under way at once it gains from; 1 unless set. */
  readonly commitsAtOnce?: number;
  /** The most guards that a write of several commands should have, where the store has a limit. Its sessions are at most as many and 32 more. */
  readonly maxGuards?: number;

  /** Reads one snapshot: all of it as it was at one point between two commits. */
  read(query: ReadQuery): Promise<ReadResult>;

  /**
   * Lists entries whose key starts with `prefix` and is greater than `after`, in the order of their keys' bytes. Pages
   * of one listing may come from different snapshots.
   *
   * @param limit from 1; fewer entries than that mean the end.
   */
  list(prefix: string, limit: number, after?: string): Promise<readonly Entry[]>;

  /**
   * Commits independent writes in order, each all or nothing, and answers for each. One round trip and one durable flush
   * for the whole batch. Of two writes of a batch that touch the same key, the second sees the first.
   */
  commit(batch: readonly ConditionalWrite[]): Promise<readonly CommitResult[]>;

  /**
   * Opens a session that lasts `ttlMs` from now by the engine's own clock, unless kept alive. To repeat it is to keep
   * it alive.
   *
   * @param id chosen by the caller, never used before: 1 to 64 of `A–Z a–z 0–9 _ -`.
   * @returns false where a session of that id has ended: an end is final.
   */
  openSession(id: string, ttlMs: number): Promise<boolean>;

  /** Gives each live session its whole TTL again. @returns those that were alive; all others have ended, for good (S3). */
  keepAlive(ids: readonly string[]): Promise<ReadonlySet<string>>;

  /** Ends a session now. To end one that has ended does nothing. */
  endSession(id: string): Promise<void>;

  /**
   * Tells `listener` of every session that has ended, by whatever cause, at the latest `sweepMs` after; also of those
   * that had ended before and were not yet forgotten. Tells again every few seconds until they are forgotten: whoever cleans up after
   * them may fail.
   *
   * @returns a function that stops it.
   */
  watchEndings(listener: (ids: readonly string[]) => void): () => void;

  /** Forgets ended sessions that were cleaned up after: the feed no longer tells of them. They stay ended. */
  forgetSessions(ids: readonly string[]): Promise<void>;

  /**
   * Receives the wakes that commits send to `inbox`, with the version of the commit. A wake may be lost or come twice, but
   * while the engine is up one sent after the next call to this engine was answered does come. An inbox is listened to at one engine: what that
   * commits itself need not go through the store. @returns a function that stops it.
   */
  subscribe(inbox: string, listener: (message: string, version: Version) => void): () => void;

  /**
   * Makes every later version higher than `version`: for a store restored from an old backup, so that no token falls.
   * @returns the version that was current before.
   */
  raiseVersion(version: Version): Promise<Version>;

  /** Looks at the settings of the store that bear on what it promises, as far as they can be asked for. */
  check?(): Promise<readonly Finding[]>;

  /** Stops timers and frees what the engine opened itself. Sessions stay as they are. */
  close(): Promise<void>;
}
