import { stateOf } from './found.ts';
import { type OnceRow, onceStatements } from './sql.ts';
import type { OnceStore, UnfinishedRun } from './store.ts';

/** What the store calls on a database: `DatabaseSync` of `node:sqlite` has it, and `better-sqlite3` too. */
export interface OnceSqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): {
    get(...values: (string | number | null)[]): unknown;
    all(...values: (string | number | null)[]): unknown[];
    run(...values: (string | number | null)[]): unknown;
  };
}

export interface SqliteOnceStore extends OnceStore {
  /** What began and did not end in time: for an operator. */
  unfinished(): UnfinishedRun[];
  /** Removes the records that have expired; nothing else does. */
  deleteExpired(): void;
}

/**
 * Records in a table of SQLite; makes it if it is not there. Do not call {@link once} inside a transaction, which could undo the
 * record and not the effect. Time is the machine's wall clock: if it is set forward, runs count as crashed too early.
 *
 * @param options `table`: `pawl_once` unless set.
 * @throws FenceUsageError
 */
export function sqliteOnceStore(
  db: OnceSqliteDatabase,
  { table = 'pawl_once' }: { readonly table?: string } = {},
): SqliteOnceStore {
  const sql = onceStatements(table, "CAST(unixepoch('subsec') * 1000 AS INTEGER)");
  const prepare = (text: string) => db.prepare(text.replaceAll(/\$\d/g, '?'));
  db.exec(sql.create);
  const begin = prepare(sql.begin);
  const look = prepare(sql.look);
  const finish = prepare(sql.finish);
  const forget = prepare(sql.forget);
  const giveUp = prepare(sql.giveUp);
  const unfinished = prepare(sql.unfinished);
  const deleteExpired = prepare(sql.deleteExpired);
  return {
    begin(key, run, options) {
      for (;;) {
        const begun = begin.get(key, run, options.runMs, options.takeOver ? 1 : 0) as
          | { runs: number }
          | undefined;
        if (begun !== undefined) return { state: 'begun', repeat: begun.runs > 1 };
        const found = stateOf(look.get(key) as OnceRow | undefined, options);
        if (found !== undefined) return found;
      }
    },
    finish(key, value, keepMs) {
      const row = finish.get(key, value, keepMs ?? null) ?? look.get(key);
      return (row as { value: string | null } | undefined)?.value ?? '';
    },
    forget: (key, run) => void forget.run(key, run),
    giveUp: (key, run) => void giveUp.run(key, run),
    unfinished: () => (unfinished.all() as UnfinishedRun[]).map(({ key, run }) => ({ key, run })),
    deleteExpired: () => void deleteExpired.run(),
  };
}
