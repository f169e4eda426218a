import type { DatabaseSync } from 'node:sqlite';
import { StoreCorruptError, StoreUnusableError, StoreVersionError } from '../../errors.ts';

/** Marks a database as Pawl's: the letters "Pawl". */
export const APPLICATION_ID = 0x5061776c;

/** The format of the tables; a newer Pawl that changes them counts up. */
export const FORMAT = 1;

/**
 * Text is kept as its UTF-8 bytes: bytes have an order that all agree on, and early versions of `node:sqlite` cut
 * text at a NUL. A session that has ended has no `expires_ms`. Times are milliseconds since the boot `boot_id`.
 */
const TABLES = `
  CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL,
    wake_seq INTEGER NOT NULL,
    boot_id TEXT NOT NULL
  ) STRICT;
  CREATE TABLE entry (
    key BLOB PRIMARY KEY,
    value BLOB NOT NULL,
    version INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE session (
    id TEXT PRIMARY KEY,
    ttl_ms REAL NOT NULL,
    expires_ms REAL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX session_expiry ON session (expires_ms);
  CREATE TABLE wake (
    seq INTEGER PRIMARY KEY,
    inbox TEXT NOT NULL,
    message BLOB NOT NULL,
    version INTEGER NOT NULL,
    at_ms REAL NOT NULL
  ) STRICT;
  CREATE INDEX wake_inbox ON wake (inbox);
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${FORMAT};
`;

/**
 * Looks at what the database is.
 *
 * @returns `empty` where nobody has made anything in it yet, `ready` where it has Pawl's tables of this format.
 * @throws {StoreUnusableError} where it belongs to another application.
 * @throws {StoreVersionError} where a newer Pawl made it.
 * @throws {StoreCorruptError} where Pawl's mark is there but its data are not.
 */
export function identify(db: DatabaseSync, where: string): 'empty' | 'ready' {
  const applicationId = pragma(db, 'application_id');
  const format = pragma(db, 'user_version');
  if (applicationId === APPLICATION_ID) {
    if (format > FORMAT) throw new StoreVersionError(where, format, FORMAT);
    if (format !== FORMAT) throw new StoreCorruptError(where, `it claims format ${format}, which never was`);
    const tables = db.prepare("SELECT name FROM sqlite_schema WHERE name = 'meta'").all();
    if (tables.length === 0 || db.prepare('SELECT id FROM meta').all().length === 0) {
      throw new StoreCorruptError(where, 'the record of its versions is missing');
    }
    return 'ready';
  }
  const { objects } = db.prepare('SELECT count(*) AS objects FROM sqlite_schema').get() as {
    objects: number;
  };
  if (applicationId !== 0 || format !== 0 || objects > 0) {
    throw new StoreUnusableError(
      where,
      'it is an SQLite database of another application; give Pawl a file of its own',
    );
  }
  return 'empty';
}

/** Makes the tables. To be called in a transaction on a database that is `empty`. */
export function createTables(db: DatabaseSync, bootId: string): void {
  db.exec(TABLES);
  db.prepare('INSERT INTO meta (id, version, wake_seq, boot_id) VALUES (1, 0, 0, ?)').run(bootId);
}

function pragma(db: DatabaseSync, name: 'application_id' | 'user_version'): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name]);
}
