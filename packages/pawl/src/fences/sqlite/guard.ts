import { FenceUsageError } from '../errors.ts';
import type { GuardOptions, GuardReport, GuardState, UnfencedReason, UnfencedWrites } from '../guard.ts';
import { columnsOf, parseResourcePattern } from '../resource-pattern.ts';
import { createCarried, guardTables } from './carried.ts';
import {
  checkFenceTable,
  createFenceTable,
  DEFAULT_TABLE,
  identifier,
  inTransaction,
  literal,
  type SqliteDatabase,
} from './database.ts';
import { type GuardedTable, guardTriggers, readMark } from './guard-triggers.ts';

export interface SqliteGuardOptions extends GuardOptions {
  /** The table of the fence, as it was given to the fence; `pawl_fence` unless set. */
  readonly fenceTable?: string;
}

/**
 * Puts a guard on a table, or changes the one that is there, in one step. From then on every row that is written by a transaction that has not
 * called the fence is recorded or refused, whoever wrote the SQL. It looks at each row.
 *
 * Two ways go past it, as past every trigger of SQLite: the rows that an `INSERT` or `UPDATE OR REPLACE` replaces are not looked at unless `recursive_triggers` is
 * on, and a program can drop the trigger.
 *
 * @param db outside a transaction.
 * @throws FenceUsageError where there is no such table or column.
 */
export function installGuard(db: SqliteDatabase, options: SqliteGuardOptions): void {
  const { table, resource, mode, fenceTable = DEFAULT_TABLE } = options;
  checkFenceTable(fenceTable);
  if (mode !== 'audit' && mode !== 'enforce') {
    throw new FenceUsageError(table, `The mode of a guard is "audit" or "enforce", but was "${mode}".`);
  }
  const pattern = resource === undefined ? undefined : parseResourcePattern(resource);
  if (resource?.includes('\0')) {
    throw new FenceUsageError(
      table,
      'The resource of a guard stands in the text of a trigger, so it has no NUL.',
    );
  }
  const guarded = findTable(db, table);
  for (const column of columnsOf(pattern ?? [])) {
    if (!guarded.columns.includes(column)) {
      throw new FenceUsageError(
        table,
        `${guarded.name} has no column "${column}"; it has ${guarded.columns.join(', ')}.`,
      );
    }
  }
  const { unfenced } = guardTables(fenceTable);
  inOneStep(db, table, () => {
    createFenceTable(db, fenceTable);
    db.exec(createCarried(fenceTable));
    db.exec(
      `CREATE TABLE IF NOT EXISTS ${unfenced} (relation TEXT NOT NULL, operation TEXT NOT NULL, reason TEXT NOT NULL, statement TEXT NOT NULL,
         row TEXT NOT NULL, count INTEGER NOT NULL, first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL,
         PRIMARY KEY (relation, operation, reason, statement)) WITHOUT ROWID`,
    );
    dropTriggers(db, guarded.name);
    for (const trigger of guardTriggers(guarded, fenceTable, mode, resource, pattern)) db.exec(trigger);
  });
}

/**
 * Takes the guard off a table and forgets what it has recorded. Nothing happens where there is none.
 *
 * @throws FenceUsageError where there is no such table.
 */
export function removeGuard(
  db: SqliteDatabase,
  options: { readonly table: string; readonly fenceTable?: string },
): void {
  const { table, fenceTable = DEFAULT_TABLE } = options;
  checkFenceTable(fenceTable);
  const { name } = findTable(db, table);
  const { carried, never, unfenced } = guardTables(fenceTable);
  if (!isThere(db, unfenced)) return;
  inOneStep(db, table, () => {
    dropTriggers(db, name);
    db.exec(`DELETE FROM ${unfenced} WHERE relation = ${literal(name)}`);
    if (guardsOf(db).length > 0) return;
    for (const each of [carried, never, unfenced]) db.exec(`DROP TABLE ${each}`);
  });
}

/** What guards there are, and which writes they have let pass although they were not fenced. `count` is of rows. */
export function guardReport(db: SqliteDatabase, options: { readonly fenceTable?: string } = {}): GuardReport {
  const { fenceTable = DEFAULT_TABLE } = options;
  checkFenceTable(fenceTable);
  const { unfenced } = guardTables(fenceTable);
  if (!isThere(db, unfenced)) return { guards: [], unfenced: [] };
  const records = db
    .prepare(`SELECT * FROM ${unfenced} ORDER BY count DESC, relation, operation, statement`)
    .all() as Recorded[];
  return { guards: guardsOf(db), unfenced: records.map(unfencedWrites) };
}

interface Recorded {
  readonly relation: string;
  readonly operation: UnfencedWrites['operation'];
  readonly reason: UnfencedReason;
  readonly statement: string;
  readonly row: string;
  readonly count: number;
  readonly first_ms: number;
  readonly last_ms: number;
}

function unfencedWrites(each: Recorded): UnfencedWrites {
  return {
    table: each.relation,
    operation: each.operation,
    reason: each.reason,
    application: undefined,
    role: undefined,
    query: each.statement === '' ? undefined : each.statement,
    row: each.row,
    count: Number(each.count),
    firstAt: new Date(Number(each.first_ms)),
    lastAt: new Date(Number(each.last_ms)),
  };
}

/** What a guard is stands in its triggers, so that it goes with the table, whatever becomes of that. */
function guardsOf(db: SqliteDatabase): GuardState[] {
  const guards = new Map<string, GuardState>();
  for (const { on, sql } of triggersOf(db)) {
    const mark = readMark(sql);
    if (mark !== undefined) guards.set(on, { table: on, ...mark });
  }
  return [...guards.values()];
}

function findTable(db: SqliteDatabase, table: unknown): GuardedTable {
  if (typeof table !== 'string' || table === '') {
    throw new FenceUsageError(String(table), 'table must be a name.');
  }
  const found = db
    .prepare(
      "SELECT name, wr AS without_rowid FROM pragma_table_list(?) WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )
    .get(table) as { name: string; without_rowid: number | bigint } | undefined;
  if (found === undefined) {
    throw new FenceUsageError(table, `There is no table ${table} to guard in this database.`);
  }
  const columns = db.prepare('SELECT name, pk FROM pragma_table_info(?) ORDER BY cid').all(found.name) as {
    name: string;
    pk: number | bigint;
  }[];
  return {
    name: found.name,
    columns: columns.map(({ name }) => name),
    key:
      Number(found.without_rowid) === 1
        ? columns.filter(({ pk }) => pk > 0).map(({ name }) => name)
        : undefined,
  };
}

function isThere(db: SqliteDatabase, table: string): boolean {
  return db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?").get(table) !== undefined;
}

/** By what they are and not by their names: the table may have been called otherwise when they were made. */
function dropTriggers(db: SqliteDatabase, table: string): void {
  for (const { name, on, sql } of triggersOf(db)) {
    if (on === table && readMark(sql) !== undefined) db.exec(`DROP TRIGGER ${identifier(name)}`);
  }
}

function triggersOf(db: SqliteDatabase): { name: string; on: string; sql: string }[] {
  return db
    .prepare(`SELECT name, tbl_name AS "on", sql FROM sqlite_master WHERE type = 'trigger' ORDER BY tbl_name`)
    .all() as { name: string; on: string; sql: string }[];
}

function inOneStep(db: SqliteDatabase, table: string, work: () => void): void {
  if (inTransaction(db)) {
    throw new FenceUsageError(table, 'A guard is changed outside a transaction, in one of its own.');
  }
  db.exec('BEGIN IMMEDIATE');
  try {
    work();
    db.exec('COMMIT');
  } catch (error) {
    if (inTransaction(db)) db.exec('ROLLBACK');
    throw error;
  }
}
