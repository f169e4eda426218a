import type { SqlRunner } from './sql-row.ts';

/** What is called on `pg`: a pool or a client. */
export interface PgLike {
  query(sql: string, values: unknown[]): Promise<{ rows: unknown[]; rowCount: number | null }>;
}

/** Runs statements by `pg`. */
export function pgRunner(db: PgLike): SqlRunner {
  const query = (sql: string, values: readonly unknown[]) => {
    let at = 0;
    return db.query(
      sql.replaceAll('?', () => `$${++at}`),
      [...values],
    );
  };
  return {
    rows: async (sql, values) => (await query(sql, values)).rows as Record<string, unknown>[],
    change: async (sql, values) => (await query(sql, values)).rowCount ?? 0,
  };
}

/** What is called on a database of SQLite: `DatabaseSync` of `node:sqlite` has it, and `better-sqlite3` too. */
export interface SqliteLike {
  prepare(sql: string): {
    all(...values: never[]): unknown[];
    run(...values: never[]): { changes: number | bigint };
  };
}

/** Runs statements by `node:sqlite` or `better-sqlite3`. */
export function sqliteRunner(db: SqliteLike): SqlRunner {
  return {
    rows: async (sql, values) => db.prepare(sql).all(...(values as never[])) as Record<string, unknown>[],
    change: async (sql, values) => Number(db.prepare(sql).run(...(values as never[])).changes),
  };
}

/** What is called on `mysql2/promise`: a pool or a connection. */
export interface MysqlLike {
  execute(sql: string, values: never[]): Promise<[unknown, unknown]>;
}

/** Runs statements by `mysql2/promise` (MySQL, MariaDB). */
export function mysqlRunner(db: MysqlLike): SqlRunner {
  return {
    rows: async (sql, values) => (await db.execute(sql, values as never[]))[0] as Record<string, unknown>[],
    change: async (sql, values) => {
      const [result] = await db.execute(sql, values as never[]);
      return (result as { affectedRows: number }).affectedRows;
    },
  };
}
