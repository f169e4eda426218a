import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { parseToken, type Token } from '../../token.ts';
import type { Bearer, BearerRules } from '../bearer.ts';
import { FenceBusyError, FenceUsageError } from '../errors.ts';
import { sqliteFence } from '../sqlite.ts';

/** The state of a fence in a file of its own, as it is seen while no other process can change it. */
export interface LockedState {
  /** The highest token honoured so far. */
  highest(): Token | undefined;
  /** @throws StaleTokenError, MissingTokenError, InvalidTokenError, InvalidSequencerError, TokenJumpError */
  raise(bearer: Bearer): void;
}

/** SQLite's codes for "another has it locked", and for what is damaged or was never a database; what is added to them says why. */
const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

/**
 * The highest token of one file, in a small SQLite database beside it. SQLite is here for two things that Node has not: a lock
 * between processes that the kernel takes away from one that is killed, and a write that is whole or not there after a crash.
 */
export class StateFile {
  readonly #path: string;
  readonly #resource: string;
  readonly #busyMs: number;
  readonly #rules: BearerRules;

  constructor(path: string, resource: string, busyMs: number, rules: BearerRules) {
    this.#path = path;
    this.#resource = resource;
    this.#busyMs = busyMs;
    this.#rules = rules;
  }

  /** Runs `act` while no other process can, and flushes what it raised before it returns. */
  locked<T>(act: (state: LockedState) => T): T {
    return this.#open((db) => {
      // Where something throws, closing the database undoes the transaction.
      db.exec('BEGIN IMMEDIATE');
      const fence = sqliteFence(db, this.#rules);
      const result = act({
        highest: () => highestIn(db),
        raise: (bearer) => {
          takeOver(db, this.#resource);
          fence.raise(this.#resource, bearer);
        },
      });
      db.exec('COMMIT');
      return result;
    });
  }

  /** The highest token honoured so far; makes no file. */
  highest(): Token | undefined {
    if (!existsSync(this.#path)) return undefined;
    return this.#open(highestIn);
  }

  #open<T>(use: (db: DatabaseSync) => T): T {
    const db = new DatabaseSync(this.#path);
    try {
      // EXTRA: that the journal is gone, which is what commits, has to be on the disk too.
      db.exec(`PRAGMA busy_timeout = ${this.#busyMs}; PRAGMA synchronous = EXTRA`);
      return use(db);
    } catch (error) {
      const code = sqliteCode(error);
      if (code === SQLITE_BUSY) throw new FenceBusyError(this.#resource, this.#busyMs, { cause: error });
      if (code === SQLITE_CORRUPT || code === SQLITE_NOTADB) throw unreadable(this.#resource, this.#path);
      throw error;
    } finally {
      db.close();
    }
  }
}

/** The file may have had another name when it was fenced; the state is of one file, so the highest is that of any name. */
function highestIn(db: DatabaseSync): Token | undefined {
  const made = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'pawl_fence'").get();
  if (made === undefined) return undefined;
  const row = db.prepare('SELECT CAST(max(token) AS TEXT) AS token FROM pawl_fence').get();
  return parseToken(row?.token);
}

/** What was honoured under another name is honoured under this one. */
function takeOver(db: DatabaseSync, resource: string): void {
  db.prepare(
    `INSERT INTO pawl_fence (resource, token) SELECT ?, max(token) FROM pawl_fence HAVING max(token) IS NOT NULL
     ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE excluded.token > token`,
  ).run(resource);
}

function sqliteCode(error: unknown): number | undefined {
  return error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : undefined;
}

function unreadable(resource: string, path: string): FenceUsageError {
  return new FenceUsageError(
    resource,
    `"${path}" is not the state of a fence, or is damaged, so nothing was written. Put back the file that was there; where it is lost, remove this one and ` +
      'raise the fence to the token of the present holder first.',
  );
}
