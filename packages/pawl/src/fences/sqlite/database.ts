import { FenceUsageError } from '../errors.ts';

/** What a fence calls on a database: `DatabaseSync` of `node:sqlite` has it, and `better-sqlite3` too. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): {
    get(...values: (string | bigint)[]): unknown;
    all(...values: (string | bigint)[]): unknown[];
    run(...values: (string | bigint)[]): unknown;
  };
}

/** Where the fences keep their state unless told otherwise. */
export const DEFAULT_TABLE = 'pawl_fence';

/** @throws FenceUsageError where it is no plain name. */
export function checkFenceTable(table: unknown): asserts table is string {
  if (typeof table === 'string' && /^[A-Za-z_]\w{0,62}$/.test(table)) return;
  throw new FenceUsageError(String(table), 'The table of a fence must be a name of letters, digits and "_".');
}

export function createFenceTable(db: SqliteDatabase, table: string): void {
  db.exec(
    `CREATE TABLE IF NOT EXISTS ${table} (resource TEXT PRIMARY KEY, token INTEGER NOT NULL) WITHOUT ROWID`,
  );
}

/** SQLite refuses a transaction within a transaction; the property that tells is too new for Node 22.13. */
export function inTransaction(db: SqliteDatabase): boolean {
  try {
    db.exec('BEGIN');
  } catch {
    return true;
  }
  db.exec('ROLLBACK');
  return false;
}

export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
