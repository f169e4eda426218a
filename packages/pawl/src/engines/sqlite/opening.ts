import { accessSync, constants, type Stats, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { InvalidArgumentError, StoreUnusableError } from '../../errors.ts';
import { undo } from './connection.ts';
import { openingError } from './failures.ts';
import type { Patience } from './patience.ts';
import { createTables, identify } from './schema.ts';

/** So many pages of the log are gathered before they go into the database itself: 16 MiB. */
const CHECKPOINT_PAGES = 4096;

/** The name of a database in messages. */
export function nameOf(path: string): string {
  return `The SQLite database "${path}"`;
}

/**
 * Checks the path of a database.
 *
 * @returns the path, absolute: SQLite could take a relative one for a URI.
 * @throws {InvalidArgumentError} where it is no path of a file.
 */
export function checkPath(path: unknown): string {
  if (typeof path !== 'string' || path === '' || path.includes('\0')) {
    throw new InvalidArgumentError('path', 'the path of a file', path);
  }
  if (path === ':memory:') {
    throw new InvalidArgumentError(
      'path',
      'the path of a file (to keep locks in memory, use memoryEngine)',
      path,
    );
  }
  return resolve(path);
}

/**
 * Opens the database and makes its tables if it is new. Several processes may do so at once.
 *
 * @param path absolute.
 * @throws {StoreUnusableError} {@link StoreVersionError} {@link StoreCorruptError} {@link EngineUnavailableError}
 */
export async function openDatabase(path: string, patience: Patience, bootId: string): Promise<DatabaseSync> {
  const where = nameOf(path);
  checkFile(path, where);
  let db: DatabaseSync | undefined;
  try {
    const opened = new DatabaseSync(path);
    db = opened;
    await patience.untilFree(() => prepare(opened, where, bootId));
    return db;
  } catch (error) {
    db?.close();
    throw openingError(error, where);
  }
}

/**
 * Remembers which file is at the path now.
 *
 * @returns a check that throws once it is another: who goes on with a file that was removed or replaced shares no
 * locks with those who open the new one. To look at what the kernel has at hand takes microseconds.
 */
export function watchFile(path: string, where: string): () => void {
  const opened = stat(path, where);
  return () => {
    const now = stat(path, where);
    if (now?.ino === opened?.ino && now?.dev === opened?.dev) return;
    throw new StoreUnusableError(
      where,
      'its file was removed or replaced while it was open; stop every process that uses it, then start again',
    );
  };
}

function prepare(db: DatabaseSync, where: string, bootId: string): void {
  // fullfsync is what makes a flush reach the disk itself on macOS; elsewhere it does nothing.
  db.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON');
  // The log holds the same few pages again and again, and to check it in costs two flushes.
  db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  const found = identify(db, where);
  checkEncoding(db, where);
  if (db.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode !== 'wal') {
    throw new StoreUnusableError(
      where,
      'its file system cannot do a write-ahead log; use a disk of this machine',
    );
  }
  if (found === 'ready') return;
  db.exec('BEGIN IMMEDIATE');
  try {
    // Another process may have been faster.
    if (identify(db, where) === 'empty') createTables(db, bootId);
    db.exec('COMMIT');
  } catch (error) {
    undo(db);
    throw error;
  }
}

/** Whoever made the empty database may have chosen how it keeps texts, which then are no UTF-8 as bytes. */
function checkEncoding(db: DatabaseSync, where: string): void {
  const encoding = db.prepare('PRAGMA encoding').get()?.encoding;
  if (encoding === 'UTF-8') return;
  throw new StoreUnusableError(where, `its encoding is ${encoding} and must be UTF-8; give Pawl a new file`);
}

/** Finds out what SQLite would only call "unable to open database file". */
function checkFile(path: string, where: string): void {
  const file = stat(path, where);
  if (file?.isDirectory()) {
    throw new StoreUnusableError(where, 'it is a directory; give the path of a file in it');
  }
  checkDirectory(path, where);
  if (file === undefined) return;
  if (!file.isFile()) throw new StoreUnusableError(where, 'it is no regular file');
  if (!allows(path, constants.R_OK | constants.W_OK)) {
    throw new StoreUnusableError(
      where,
      'this process may not read and write the file; check its owner and mode',
    );
  }
}

function checkDirectory(path: string, where: string): void {
  const directory = dirname(path);
  const found = stat(directory, where);
  if (found === undefined) {
    throw new StoreUnusableError(where, `its directory "${directory}" does not exist; create it first`);
  }
  if (!found.isDirectory()) throw new StoreUnusableError(where, `"${directory}" is not a directory`);
  if (!allows(directory, constants.W_OK | constants.X_OK)) {
    throw new StoreUnusableError(
      where,
      `this process may not create files in "${directory}", and SQLite keeps its log beside the database; check the directory's owner and mode`,
    );
  }
}

function stat(path: string, where: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (cause) {
    throw new StoreUnusableError(where, `"${path}" cannot be looked at`, { cause });
  }
}

function allows(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}
