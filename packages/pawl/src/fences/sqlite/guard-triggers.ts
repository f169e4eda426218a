import type { GuardMode } from '../guard.ts';
import { columnsOf, type PatternPart } from '../resource-pattern.ts';
import { guardTables } from './carried.ts';
import { identifier, literal } from './database.ts';

/** A table as its triggers have to know it. */
export interface GuardedTable {
  readonly name: string;
  readonly columns: readonly string[];
  /** The columns of the primary key where there is no rowid. */
  readonly key: readonly string[] | undefined;
}

type Operation = 'INSERT' | 'UPDATE' | 'DELETE';

/** An expression can be only so deep. */
const MOST_COLUMNS = 200;

function triggerName(table: string, operation: string): string {
  return `pawl_guard_${table}_${operation.toLowerCase()}`;
}

/**
 * The triggers of a guard. They come after the write, since before it a row may not have its key yet; a refusal undoes the statement. As
 * comments they hold what the guard is.
 */
export function guardTriggers(
  table: GuardedTable,
  fenceTable: string,
  mode: GuardMode,
  resource: string | undefined,
  pattern: readonly PatternPart[] | undefined,
): string[] {
  return (['INSERT', 'UPDATE', 'DELETE'] as const).map((operation) => {
    const perRow = columnsOf(pattern ?? []).length > 0;
    const both = operation === 'UPDATE' && perRow ? ['OLD', 'NEW'] : [operation === 'DELETE' ? 'OLD' : 'NEW'];
    const covered = both.map((row) => isCovered(fenceTable, needed(pattern, row)));
    const reason = reasonExpression(
      fenceTable,
      both.map((row) => needed(pattern, row)),
    );
    const body =
      mode === 'enforce'
        ? refuse(table.name, operation, resource, reason)
        : record(table, fenceTable, operation, reason);
    return `CREATE TRIGGER ${identifier(triggerName(table.name, operation))} AFTER ${operation} ON ${identifier(table.name)}
WHEN NOT (${covered.join(' AND ')}) ${mark(mode, resource)}
BEGIN
${body}
END`;
  });
}

function mark(mode: GuardMode, resource: string | undefined): string {
  return `/*pawl ${JSON.stringify({ mode, resource }).replaceAll('*/', '*\\/')}*/`;
}

/** What the guard is that a trigger belongs to; `undefined` where it belongs to none. */
export function readMark(sql: string): { mode: GuardMode; resource: string | undefined } | undefined {
  const [, text] = /\/\*pawl (\{.*?\})\*\/\n/s.exec(sql) ?? [];
  if (text === undefined) return undefined;
  const { mode, resource } = JSON.parse(text);
  return { mode, resource };
}

/** The resource that a row needs, as an expression; NULL, which no token is for, where a value of it is. */
function needed(pattern: readonly PatternPart[] | undefined, row: string): string | undefined {
  return (
    pattern
      // Cast, since to compare a text with a number SQLite makes a number of the text: "01" would be 1.
      ?.map((part) =>
        'text' in part ? literal(part.text) : `CAST(${row}.${identifier(part.column)} AS TEXT)`,
      )
      .join(' || ')
  );
}

function isCovered(fenceTable: string, resource: string | undefined): string {
  const { carried } = guardTables(fenceTable);
  return (
    `EXISTS (SELECT 1 FROM ${carried} AS c JOIN ${fenceTable} AS f ON f.resource = c.resource ` +
    `WHERE c.token >= f.token${resource === undefined ? '' : ` AND c.resource = ${resource}`})`
  );
}

/** Why a row is not covered. @param resources those it needs. */
function reasonExpression(fenceTable: string, resources: readonly (string | undefined)[]): string {
  const { carried } = guardTables(fenceTable);
  const others = resources.flatMap((resource) =>
    resource === undefined
      ? []
      : [
          `WHEN NOT EXISTS (SELECT 1 FROM ${carried} WHERE resource = ${resource}) THEN 'token of another resource'`,
        ],
  );
  return [
    `CASE WHEN NOT EXISTS (SELECT 1 FROM ${carried}) THEN 'no token'`,
    ...others,
    "ELSE 'stale token' END",
  ].join(' ');
}

/** The text of a refusal has to be a constant. */
function refuse(table: string, operation: Operation, resource: string | undefined, reason: string): string {
  const say = (what: string, fix: string) =>
    `RAISE(ABORT, ${literal(`${table} is fenced and refused this ${operation}: its transaction carries ${what}${resource === undefined ? '' : ` where it needs that of "${resource}"`}. ${fix}`)})`;
  const name = resource === undefined ? 'RESOURCE' : `'${resource}'`;
  const fix =
    `To fix it, acquire the lock and write in fence.transaction(${name}, lease, …) of pawl/fences/sqlite. ` +
    `To let such writes pass and only record them: pawl fence install --table ${table} --audit`;
  return `SELECT CASE ${reason}
  WHEN 'no token' THEN ${say('no token', fix)}
  WHEN 'stale token' THEN ${say('a stale token', 'Stop, and acquire the lock again.')}
  ELSE ${say('only the token of another resource', fix)} END;`;
}

const NOW_MS = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)";

/** In two statements: what the statement that fired the trigger says about conflicts would take the place of what stands here. */
function record(table: GuardedTable, fenceTable: string, operation: Operation, reason: string): string {
  const { unfenced } = guardTables(fenceTable);
  const row = operation === 'DELETE' ? 'OLD' : 'NEW';
  // A column may be called rowid and hold nothing, and JSON holds no bytes: neither may fail the write.
  const key =
    table.key === undefined
      ? `coalesce(${row}.rowid, '')`
      : `json_array(${table.key.map((column) => withoutBytes(`${row}.${identifier(column)}`)).join(', ')})`;
  const statement = operation === 'UPDATE' ? changedColumns(table.columns) : "''";
  const same = `relation = ${literal(table.name)} AND operation = '${operation}' AND reason = ${reason} AND statement = ${statement}`;
  return `INSERT INTO ${unfenced} (relation, operation, reason, statement, row, count, first_ms, last_ms)
  SELECT ${literal(table.name)}, '${operation}', ${reason}, ${statement}, '', 0, ${NOW_MS}, 0 WHERE NOT EXISTS (SELECT 1 FROM ${unfenced} WHERE ${same});
UPDATE ${unfenced} SET count = count + 1, row = ${key}, last_ms = ${NOW_MS} WHERE ${same};`;
}

function withoutBytes(value: string): string {
  return `CASE typeof(${value}) WHEN 'blob' THEN hex(${value}) ELSE ${value} END`;
}

/** `UPDATE a, b`: SQLite does not show the statement, but which columns it changed tells one from another. */
function changedColumns(columns: readonly string[]): string {
  const changed = columns
    .slice(0, MOST_COLUMNS)
    .map(
      (column) =>
        `CASE WHEN OLD.${identifier(column)} IS NOT NEW.${identifier(column)} THEN ${literal(`, ${column}`)} ELSE '' END`,
    );
  return `('UPDATE ' || substr(${changed.join(' || ')}, 3))`;
}
