import { FenceUsageError } from '../errors.ts';
import { stateOf } from './found.ts';
import { type OnceRow, onceStatements } from './sql.ts';
import type { OnceStore, UnfinishedRun } from './store.ts';

/** What the store calls on a database: a pool or a client of `pg` has it. */
export interface OncePostgresDatabase {
  query(sql: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

export interface PostgresOnceStore extends OnceStore {
  /** What began and did not end in time: for an operator. */
  unfinished(): Promise<UnfinishedRun[]>;
  /** Removes the records that have expired; nothing else does. */
  deleteExpired(): Promise<void>;
}

/** What Postgres says to all but one of those who make the same table at once. */
const MADE_BY_ANOTHER = new Set(['23505', '42710', '42P07']);

/**
 * Records in a table of Postgres; makes it on first use if it is not there. Give it a pool, or a client that is not in a transaction,
 * which could undo the record and not the effect. Time is the database's clock.
 *
 * @param options `table`: `pawl_once` unless set; a schema may stand before it.
 * @throws FenceUsageError
 */
export function postgresOnceStore(
  db: OncePostgresDatabase,
  { table = 'pawl_once' }: { readonly table?: string } = {},
): PostgresOnceStore {
  const sql = onceStatements(table, '(extract(epoch from clock_timestamp()) * 1000)::bigint');
  let made: Promise<void> | undefined;
  const rows = async <Row>(text: string, ...values: unknown[]): Promise<Row[]> => {
    made ??= makeTable(db, sql.create);
    try {
      await made;
    } catch (error) {
      made = undefined;
      throw error;
    }
    return (await db.query(text, values)).rows as Row[];
  };
  return {
    async begin(key, run, options) {
      if (key.includes('\0')) {
        throw new FenceUsageError(key, 'A key of once has no NUL in it where its record stands in Postgres.');
      }
      for (;;) {
        const values = [key, run, options.runMs, options.takeOver ? 1 : 0];
        const [begun] = await rows<{ runs: number }>(sql.begin, ...values);
        if (begun !== undefined) return { state: 'begun', repeat: begun.runs > 1 };
        const [row] = await rows<OnceRow>(sql.look, key);
        const found = stateOf(row, options);
        if (found !== undefined) return found;
      }
    },
    async finish(key, value, keepMs) {
      const [finished] = await rows<{ value: string | null }>(sql.finish, key, value, keepMs ?? null);
      const [row] = finished === undefined ? await rows<OnceRow>(sql.look, key) : [finished];
      return row?.value ?? '';
    },
    async forget(key, run) {
      await rows(sql.forget, key, run);
    },
    async giveUp(key, run) {
      await rows(sql.giveUp, key, run);
    },
    unfinished: () => rows<UnfinishedRun>(sql.unfinished),
    async deleteExpired() {
      await rows(sql.deleteExpired);
    },
  };
}

async function makeTable(db: OncePostgresDatabase, create: string): Promise<void> {
  try {
    await db.query(create, []);
  } catch (error) {
    if (error instanceof Error && 'code' in error && MADE_BY_ANOTHER.has(String(error.code))) return;
    throw error;
  }
}
