import { parseToken, type Token } from '../token.ts';
import {
  type Bearer,
  type BearerRules,
  checkFinished,
  checkResource,
  checkRules,
  claimOf,
} from './bearer.ts';
import { FenceUsageError, StaleTokenError, TokenJumpError } from './errors.ts';
import { CarriedTokens } from './sqlite/carried.ts';
import {
  checkFenceTable,
  createFenceTable,
  DEFAULT_TABLE,
  inTransaction,
  type SqliteDatabase,
} from './sqlite/database.ts';

export type { GuardMode, GuardReport, GuardState, UnfencedReason, UnfencedWrites } from './guard.ts';
export type { SqliteDatabase } from './sqlite/database.ts';
export { guardReport, installGuard, removeGuard, type SqliteGuardOptions } from './sqlite/guard.ts';

export interface SqliteFenceOptions extends BearerRules {
  /** The table that keeps the highest token of each resource; `pawl_fence` unless set. Letters, digits and `_`. */
  readonly table?: string;
}

/** A fence whose state stands beside the data it protects, so that check and effect are one transaction. */
export interface SqliteFence {
  /**
   * Honours the token, so that older holders are refused from now on: call it before the first read (S8). Outside a
   * transaction it commits by itself; inside one it is undone with it, which is safe, since then nothing was read for good.
   *
   * @throws StaleTokenError, MissingTokenError, InvalidTokenError; by its rules InvalidSequencerError, TokenJumpError
   */
  raise(resource: string, bearer: Bearer): void;
  /**
   * Checks and honours the token as part of the caller's own transaction: if it throws, roll back. Call it before the first
   * write; `BEGIN IMMEDIATE` saves a busy error when the transaction has read before.
   *
   * @throws as {@link raise}; FenceUsageError outside a transaction, where check and effect would be two steps.
   */
  check(resource: string, bearer: Bearer): void;
  /**
   * Ends what {@link check} began, after the last write and before the commit. Needed only where a table has a guard: the commit fails without it
   * ("FOREIGN KEY constraint failed"), so that no later transaction passes for a fenced one.
   */
  finish(): void;
  /**
   * Runs `effect` in a transaction that begins with {@link check}, and commits it; rolls back if either throws.
   *
   * @returns what `effect` returns, which must not be a promise: the connection would be shared meanwhile.
   */
  transaction<T>(resource: string, bearer: Bearer, effect: () => T): T;
}

/**
 * A fence for data in SQLite. Makes its table if it is not there, so do not call it inside a transaction that may be rolled back.
 *
 * @param db the connection that the protected writes are made on.
 * @throws FenceUsageError where `table` is no plain name.
 */
export function sqliteFence(db: SqliteDatabase, options: SqliteFenceOptions = {}): SqliteFence {
  const { table = DEFAULT_TABLE } = options;
  checkFenceTable(table);
  checkRules(options);
  createFenceTable(db, table);
  const carried = new CarriedTokens(db, table);
  const honour = db.prepare(
    `INSERT INTO ${table} (resource, token)
     SELECT ?, ? WHERE ? = 0 OR EXISTS (SELECT 1 FROM ${table} WHERE resource = ?)
     ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE excluded.token >= token AND token >= ?
     RETURNING 1 AS honoured`,
  );
  const current = db.prepare(`SELECT 1 FROM ${table} WHERE resource = ? AND token = ?`);
  // It writes nothing, but like every write it takes the lock that lets nobody else write.
  const reserve = db.prepare(`DELETE FROM ${table} WHERE 0 RETURNING 1`);
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  // As text: a token may be beyond what a number holds exactly.
  const highest = db.prepare(`SELECT CAST(token AS TEXT) AS token FROM ${table} WHERE resource = ?`);

  const raise = (resource: string, bearer: Bearer): Token => {
    checkResource(resource);
    const { token, floor } = claimOf(resource, bearer, options);
    // Most writes are not the first under their token, and need not write it again.
    if (current.get(resource, token) !== undefined) return token;
    if (honour.get(resource, token, floor, resource, floor) !== undefined) return token;
    const row = highest.get(resource) as { token: string } | undefined;
    const honoured = parseToken(row?.token);
    // Another may have raised it since the refusal; a token that was stale is still.
    if (honoured === undefined || token >= honoured) throw new TokenJumpError(resource, token, honoured);
    throw new StaleTokenError(resource, token, honoured);
  };

  const check = (resource: string, bearer: Bearer): void => {
    if (!inTransaction(db)) {
      throw new FenceUsageError(
        resource,
        `The fence of "${resource}" was checked outside a transaction, where another write can come between check and effect; begin one first.`,
      );
    }
    // Where the token stands there already nothing is written here, and the effect may be in another database that is attached.
    reserve.get();
    carried.add(resource, raise(resource, bearer), true);
  };

  const transaction = <T>(resource: string, bearer: Bearer, effect: () => T): T => {
    begin.run();
    try {
      // No guard comes or goes while the transaction lasts.
      const isGuarded = carried.add(resource, raise(resource, bearer), false);
      const result = effect();
      checkFinished(resource, result);
      if (isGuarded) carried.clear();
      commit.run();
      return result;
    } catch (error) {
      // SQLite has already rolled back after some errors of its own.
      if (inTransaction(db)) db.exec('ROLLBACK');
      throw error;
    }
  };

  return {
    raise: (resource, bearer) => {
      raise(resource, bearer);
    },
    check,
    finish: () => carried.clear(),
    transaction,
  };
}
