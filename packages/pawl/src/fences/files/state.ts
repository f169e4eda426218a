import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { parseToken, type Token } from '../../token.ts';
import type { Bearer, BearerRules } from '../bearer.ts';
import { FenceBusyError } from '../errors.ts';
import { sqliteFence } from '../sqlite.ts';

/** The state of a fence in a file of its own, as it is seen while no other process can change it. */
export interface LockedState {
  /** The highest token honoured so far. */
  highest(): Token | undefined;
  /** @throws StaleTokenError, MissingTokenError, InvalidTokenError, InvalidSequencerError, TokenJumpError */
  raise(bearer: Bearer): void;
}

/** SQLite's code for "another has it locked"; what is added to it says why. */
const SQLITE_BUSY = 5;

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
        highest: () => highestIn(db, this.#resource),
        raise: (bearer) => fence.raise(this.#resource, bearer),
      });
      db.exec('COMMIT');
      return result;
    });
  }

  /** The highest token honoured so far; makes no file. */
  highest(): Token | undefined {
    if (!existsSync(this.#path)) return undefined;
    return this.#open((db) => highestIn(db, this.#resource));
  }

  #open<T>(use: (db: DatabaseSync) => T): T {
    const db = new DatabaseSync(this.#path);
    try {
      // EXTRA: that the journal is gone, which is what commits, has to be on the disk too.
      db.exec(`PRAGMA busy_timeout = ${this.#busyMs}; PRAGMA synchronous = EXTRA`);
      return use(db);
    } catch (error) {
      if (isBusy(error)) throw new FenceBusyError(this.#resource, this.#busyMs, { cause: error });
      throw error;
    } finally {
      db.close();
    }
  }
}

function highestIn(db: DatabaseSync, resource: string): Token | undefined {
  const made = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'pawl_fence'").get();
  if (made === undefined) return undefined;
  const row = db
    .prepare('SELECT CAST(token AS TEXT) AS token FROM pawl_fence WHERE resource = ?')
    .get(resource);
  return parseToken(row?.token);
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === SQLITE_BUSY;
}
