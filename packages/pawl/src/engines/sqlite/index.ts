import { type Clock, systemClock } from '../../clock.ts';
import { InvalidArgumentError } from '../../errors.ts';
import type { Engine } from '../engine.ts';
import { Connection } from './connection.ts';
import { openingError } from './failures.ts';
import { checkPath, nameOf, openDatabase, watchFile } from './opening.ts';
import { Patience } from './patience.ts';
import { SqliteEngine } from './sqlite-engine.ts';

export { sqliteGuarantees } from './sqlite-engine.ts';

export interface SqliteEngineOptions {
  /** The database's file, on a disk of this machine. It is made if it does not exist; its directory must exist. */
  readonly path: string;
  /** How long to wait for the write lock while other processes have it, in ms, from 0. Default 5000. */
  readonly busyTimeoutMs?: number;
  /** Default: the clock of this machine. */
  readonly clock?: Clock;
}

/**
 * An engine for one machine: locks in an SQLite database (`node:sqlite`), which any number of processes of this
 * machine may use at once. Survives crashes and power loss. Not for network file systems.
 *
 * An inbox is for one engine object: a wake sent by the engine that subscribed to it is not delivered elsewhere.
 *
 * @throws {InvalidArgumentError} where an option is no good.
 * @throws {StoreUnusableError} where the file or its directory cannot be used, or belongs to another application.
 * @throws {StoreVersionError} where a newer Pawl made the database.
 * @throws {StoreCorruptError} where the database is damaged.
 * @throws {EngineUnavailableError} where other processes keep it locked, or the disk fails.
 */
export async function sqliteEngine(options: SqliteEngineOptions): Promise<Engine> {
  const { busyTimeoutMs = 5000, clock = systemClock } = options;
  const path = checkPath(options.path);
  if (!Number.isFinite(busyTimeoutMs) || busyTimeoutMs < 0) {
    throw new InvalidArgumentError('busyTimeoutMs', 'a number of milliseconds from 0', busyTimeoutMs);
  }
  const where = nameOf(path);
  const patience = new Patience(clock, busyTimeoutMs, where);
  const db = await openDatabase(path, patience, clock.bootId());
  try {
    const checkFile = watchFile(path, where);
    // To prepare statements is to read the schema, which another process may have locked.
    const engine = await patience.untilFree(
      () => new SqliteEngine(new Connection(db, where, checkFile), clock, patience),
    );
    await engine.noticeRestart();
    return engine;
  } catch (error) {
    db.close();
    throw openingError(error, where);
  }
}
