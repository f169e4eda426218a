import { FenceUsageError } from '../errors.ts';

/** The statements of a store in a database, with parameters `$1`, `$2`, …, each once and in that order, since SQLite takes them by place. */
export interface OnceStatements {
  readonly create: string;
  /** key, run, runMs, takeOver (1 or 0) → runs; no row where nothing began. */
  readonly begin: string;
  /** key → run, done, value, over. */
  readonly look: string;
  /** key, value, keepMs or NULL → value; no row where it was finished before. */
  readonly finish: string;
  /** key, run. */
  readonly forget: string;
  /** key, run. */
  readonly giveUp: string;
  readonly unfinished: string;
  readonly deleteExpired: string;
}

/**
 * One table for SQLite and Postgres. `until` is in ms since the Unix epoch by the database's own clock: the end of a run that has not
 * finished, or of a record.
 *
 * @param now the database's time in ms, as an expression.
 */
export function onceStatements(table: string, now: string): OnceStatements {
  if (typeof table !== 'string' || !/^[A-Za-z_]\w{0,62}(\.[A-Za-z_]\w{0,62})?$/.test(table)) {
    throw new FenceUsageError(
      String(table),
      'The table of records must be a name of letters, digits and "_".',
    );
  }
  const alias = 'old';
  return {
    create: `CREATE TABLE IF NOT EXISTS ${table}
      (key TEXT PRIMARY KEY, run TEXT NOT NULL, runs INTEGER NOT NULL, done INTEGER NOT NULL, value TEXT, until BIGINT)`,
    begin: `INSERT INTO ${table} AS ${alias} (key, run, runs, done, until) VALUES ($1, $2, 1, 0, ${now} + $3)
      ON CONFLICT (key) DO UPDATE SET run = excluded.run, until = excluded.until, done = 0, value = NULL,
        runs = CASE WHEN ${alias}.done = 1 THEN 1 ELSE ${alias}.runs + 1 END
      WHERE ${alias}.until <= ${now} AND (${alias}.done = 1 OR $4 = 1)
      RETURNING runs`,
    look: `SELECT run, done, value, until <= ${now} AS over FROM ${table} WHERE key = $1`,
    finish: `INSERT INTO ${table} AS ${alias} (key, run, runs, done, value, until) VALUES ($1, '', 1, 1, $2, ${now} + $3)
      ON CONFLICT (key) DO UPDATE SET done = 1, value = excluded.value, until = excluded.until WHERE ${alias}.done = 0
      RETURNING value`,
    forget: `DELETE FROM ${table} WHERE key = $1 AND run = $2 AND done = 0`,
    giveUp: `UPDATE ${table} SET until = ${now} WHERE key = $1 AND run = $2 AND done = 0`,
    unfinished: `SELECT key, run FROM ${table} WHERE done = 0 AND until <= ${now} ORDER BY key`,
    deleteExpired: `DELETE FROM ${table} WHERE done = 1 AND until <= ${now}`,
  };
}

/** A row of `look`, as either database gives it. */
export interface OnceRow {
  readonly run: string;
  readonly done: number | bigint;
  readonly value: string | null;
  /** A boolean of Postgres, a number of SQLite. */
  readonly over: boolean | number | bigint | null;
}
