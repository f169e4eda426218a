import { parseToken } from '../token.ts';
import { type Bearer, checkFinished, checkResource, tokenOf } from './bearer.ts';
import { FenceUsageError, StaleTokenError } from './errors.ts';

/** What a fence calls on a database: `DatabaseSync` of `node:sqlite` has it, and `better-sqlite3` too. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): { get(...values: (string | bigint)[]): unknown };
}

export interface SqliteFenceOptions {
  /** The table that keeps the highest token of each resource; `pawl_fence` unless set. Letters, digits and `_`. */
  readonly table?: string;
}

/** A fence whose state stands beside the data it protects, so that check and effect are one transaction. */
export interface SqliteFence {
  /**
   * Honours the token, so that older holders are refused from now on: call it before the first read (S8). Outside a
   * transaction it commits by itself; inside one it is undone with it, which is safe, since then nothing was read for good.
   *
   * @throws StaleTokenError, MissingTokenError, InvalidTokenError
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
  const { table = 'pawl_fence' } = options;
  if (typeof table !== 'string' || !/^[A-Za-z_]\w{0,62}$/.test(table)) {
    throw new FenceUsageError(
      String(table),
      'The table of a fence must be a name of letters, digits and "_".',
    );
  }
  db.exec(
    `CREATE TABLE IF NOT EXISTS ${table} (resource TEXT PRIMARY KEY, token INTEGER NOT NULL) WITHOUT ROWID`,
  );
  const honour = db.prepare(
    `INSERT INTO ${table} (resource, token) VALUES (?, ?)
     ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE excluded.token >= token
     RETURNING 1 AS honoured`,
  );
  // As text: a token may be beyond what a number holds exactly.
  const highest = db.prepare(`SELECT CAST(token AS TEXT) AS token FROM ${table} WHERE resource = ?`);

  const raise = (resource: string, bearer: Bearer): void => {
    checkResource(resource);
    const token = tokenOf(resource, bearer);
    if (honour.get(resource, token) !== undefined) return;
    const row = highest.get(resource) as { token: string };
    throw new StaleTokenError(resource, token, parseToken(row.token) ?? 0n);
  };

  const check = (resource: string, bearer: Bearer): void => {
    if (!inTransaction(db)) {
      throw new FenceUsageError(
        resource,
        `The fence of "${resource}" was checked outside a transaction, where another write can come between check and effect; begin one first.`,
      );
    }
    raise(resource, bearer);
  };

  const transaction = <T>(resource: string, bearer: Bearer, effect: () => T): T => {
    db.exec('BEGIN IMMEDIATE');
    try {
      raise(resource, bearer);
      const result = effect();
      checkFinished(resource, result);
      db.exec('COMMIT');
      return result;
    } catch (error) {
      // SQLite has already rolled back after some errors of its own.
      if (inTransaction(db)) db.exec('ROLLBACK');
      throw error;
    }
  };

  return { raise, check, transaction };
}

/** SQLite refuses a transaction within a transaction; the property that tells is too new for Node 22.13. */
function inTransaction(db: SqliteDatabase): boolean {
  try {
    db.exec('BEGIN');
  } catch {
    return true;
  }
  db.exec('ROLLBACK');
  return false;
}
