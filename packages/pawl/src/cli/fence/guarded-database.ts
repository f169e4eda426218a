import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { InvalidArgumentError, StoreUnusableError } from '../../errors.ts';
import { FenceError } from '../../fences/errors.ts';
import type { GuardOptions, GuardReport } from '../../fences/guard.ts';
import { driver, withoutPassword } from '../store-address.ts';

/** A database whose tables can have guards. */
export interface GuardedDatabase {
  install(options: GuardOptions): Promise<void>;
  remove(table: string): Promise<void>;
  report(): Promise<GuardReport>;
}

/** How its address looks, for messages and the help. */
export const DATABASE_FORMS = 'a SQLite file that is there, or postgres://…';

/**
 * Opens the database at an address for as long as `work` takes.
 *
 * @param fence where the fence keeps its state there, unless where it does by default.
 * @throws InvalidArgumentError for an address of no known kind; StoreUnusableError where the database cannot be used or refuses what is asked.
 */
export async function withDatabase<T>(
  address: string,
  fence: string | undefined,
  work: (database: GuardedDatabase) => Promise<T>,
): Promise<T> {
  const scheme = /^([A-Za-z][\w+.-]*):\/\//.exec(address)?.[1]?.toLowerCase();
  const open = scheme === undefined ? withSqlite : withPostgres;
  if (scheme !== undefined && scheme !== 'postgres' && scheme !== 'postgresql') {
    throw new InvalidArgumentError('db', DATABASE_FORMS, withoutPassword(address));
  }
  try {
    return await open(address, fence, work);
  } catch (error) {
    // Whatever is no error of Pawl's was said by the database.
    if (error instanceof FenceError || !(error instanceof Error) || !('code' in error)) throw error;
    if (String(error.code).startsWith('PAWL_')) throw error;
    throw new StoreUnusableError('The database', error.message || String(error.code), { cause: error });
  }
}

async function withSqlite<T>(
  path: string,
  fenceTable: string | undefined,
  work: (database: GuardedDatabase) => Promise<T>,
): Promise<T> {
  // To open a file that is not there would make one.
  if (!existsSync(path)) throw new StoreUnusableError(`"${path}"`, 'there is no such file');
  const { guardReport, installGuard, removeGuard } = await import('../../fences/sqlite.ts');
  const own = fenceTable === undefined ? {} : { fenceTable };
  const db = new DatabaseSync(path, { timeout: 5000 });
  try {
    return await work({
      install: async (options) => installGuard(db, { ...options, ...own }),
      remove: async (table) => removeGuard(db, { table, ...own }),
      report: async () => guardReport(db, own),
    });
  } finally {
    db.close();
  }
}

async function withPostgres<T>(
  address: string,
  schema: string | undefined,
  work: (database: GuardedDatabase) => Promise<T>,
): Promise<T> {
  const { Client } = (await driver('pg', () => import('pg'))).default;
  const { guardReport, installGuard, removeGuard } = await import('../../fences/postgres/index.ts');
  const own = schema === undefined ? {} : { schema };
  const client = new Client({ connectionString: address, application_name: 'pawl fence' });
  // Whoever waits for an answer is told.
  client.on('error', () => {});
  try {
    await client.connect();
    return await work({
      install: (options) => installGuard(client, { ...options, ...own }),
      remove: (table) => removeGuard(client, { table, ...own }),
      report: () => guardReport(client, own),
    });
  } finally {
    await client.end().catch(() => {});
  }
}
