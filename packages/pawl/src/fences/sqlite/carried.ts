import type { Token } from '../../token.ts';
import { FenceUsageError } from '../errors.ts';
import { literal, type SqliteDatabase } from './database.ts';

/*
 * What the transaction that is under way carries, for the guards. SQLite has no settings of a transaction, so it stands in a table; only one
 * transaction writes at a time, and it takes its rows away again before it commits, so whoever finds one there wrote it himself. That none
 * is left behind is enforced by SQLite: each row refers to one that is never there, which fails the commit.
 */

/** The tables beside that of the fence which are there while there are guards. */
export function guardTables(table: string): { carried: string; never: string; unfenced: string } {
  return { carried: `${table}_carried`, never: `${table}_never`, unfenced: `${table}_unfenced` };
}

export function createCarried(table: string): string {
  const { carried, never } = guardTables(table);
  return `CREATE TABLE IF NOT EXISTS ${never} (id INTEGER PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS ${carried} (resource TEXT PRIMARY KEY, token INTEGER NOT NULL,
      finish_first INTEGER NOT NULL DEFAULT 1 REFERENCES ${never} (id) DEFERRABLE INITIALLY DEFERRED) WITHOUT ROWID`;
}

/** The tokens that the transactions of one connection carry; does nothing where there is no guard in the database. */
export class CarriedTokens {
  readonly #db: SqliteDatabase;
  readonly #table: string;
  readonly #version: { get(): unknown };
  #knownVersion: unknown;
  #statements: Statements | undefined;

  constructor(db: SqliteDatabase, table: string) {
    this.#db = db;
    this.#table = guardTables(table).carried;
    this.#version = db.prepare('PRAGMA schema_version');
  }

  /**
   * @param own whether the transaction is the caller's, who may forget to take the row away.
   * @returns whether there is a guard, and so something to {@link clear}.
   * @throws FenceUsageError where nothing would keep him from that.
   */
  add(resource: string, token: Token, own: boolean): boolean {
    const statements = this.#current();
    if (statements === undefined) return false;
    // A connection may be set to read its numbers as bigints.
    if (own && Number(Object.values(statements.foreignKeys.get() as object)[0]) !== 1) {
      throw new FenceUsageError(
        resource,
        'There is a guard in this database, so with foreign keys switched off (PRAGMA foreign_keys) a transaction of your own cannot be fenced: use transaction().',
      );
    }
    statements.add.get(resource, token);
    return true;
  }

  /** All of them, before the commit. */
  clear(): void {
    this.#current()?.clear.get();
  }

  /** A guard may come and go by another process. */
  #current(): Statements | undefined {
    const { schema_version: version } = this.#version.get() as { schema_version: unknown };
    if (version === this.#knownVersion) return this.#statements;
    const isThere =
      this.#db
        .prepare(`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ${literal(this.#table)}`)
        .get() !== undefined;
    this.#statements = isThere ? this.#prepare() : undefined;
    this.#knownVersion = version;
    return this.#statements;
  }

  #prepare(): Statements {
    const table = this.#table;
    return {
      add: this.#db.prepare(
        `INSERT INTO ${table} (resource, token) VALUES (?, ?) ON CONFLICT (resource) DO UPDATE SET token = excluded.token RETURNING 1`,
      ),
      clear: this.#db.prepare(`DELETE FROM ${table} RETURNING 1`),
      foreignKeys: this.#db.prepare('PRAGMA foreign_keys'),
    };
  }
}

type Statement = ReturnType<SqliteDatabase['prepare']>;

interface Statements {
  readonly add: Statement;
  readonly clear: Statement;
  readonly foreignKeys: Statement;
}
