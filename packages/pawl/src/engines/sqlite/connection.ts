import type { DatabaseSync, StatementSync } from 'node:sqlite';

/** An open database that has its tables, and the bounds of its transactions. */
export class Connection {
  readonly db: DatabaseSync;
  /** The name of the database in messages. */
  readonly where: string;
  /** @throws {StoreUnusableError} where the file at the path is no longer the one that was opened. */
  readonly checkFile: () => void;
  readonly #begin: StatementSync;
  readonly #beginImmediate: StatementSync;
  readonly #commit: StatementSync;
  readonly #dataVersion: StatementSync;

  constructor(db: DatabaseSync, where: string, checkFile: () => void) {
    this.db = db;
    this.where = where;
    this.checkFile = checkFile;
    this.#begin = db.prepare('BEGIN');
    this.#beginImmediate = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
    this.#dataVersion = db.prepare('PRAGMA data_version');
  }

  /** Runs `look` on one snapshot of the database. */
  read<T>(look: () => T): T {
    this.#begin.run();
    try {
      return look();
    } finally {
      // Nothing is to be committed, and this end also serves after an error.
      this.undo();
    }
  }

  /** Begins to write. @throws SQLite's busy error where another process is writing. */
  beginWrite(): void {
    this.#beginImmediate.run();
  }

  /** Differs from what it was in an earlier transaction if another connection has written in between, and after an undo. */
  dataVersion(): unknown {
    return this.#dataVersion.get()?.data_version;
  }

  commit(): void {
    this.#commit.run();
  }

  undo(): void {
    undo(this.db);
  }
}

/** Undoes the transaction. After some errors SQLite has done so itself; then there is nothing left to undo. */
export function undo(db: DatabaseSync): void {
  try {
    db.exec('ROLLBACK');
  } catch {}
}
