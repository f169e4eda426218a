import { FenceUsageError } from '../errors.ts';
import type { Versioned } from './update.ts';

/** A value of a column, as far as it is needed to find or write a row. */
export type SqlValue = string | number | bigint | boolean | Uint8Array | Date | null;

/** Runs one statement of SQL with `?` for its values. */
export interface SqlRunner {
  rows(sql: string, values: readonly SqlValue[]): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** @returns how many rows it changed. */
  change(sql: string, values: readonly SqlValue[]): Promise<number>;
}

export interface SqlRowOptions {
  readonly table: string;
  /** The columns that name the row, with their values: its primary key. */
  readonly key: Readonly<Record<string, SqlValue>>;
  /** The column that counts the changes; `version` unless set. Whoever changes the row has to count, or nobody notices. */
  readonly version?: string | undefined;
}

/** The columns to write; those of the key and the version cannot be among them. */
export type RowChange = Readonly<Record<string, SqlValue>>;

/**
 * One row with a column that counts its changes: `UPDATE … SET …, version = version + 1 WHERE key = ? AND version = ?`.
 *
 * @throws FenceUsageError where a name is none; when it is read, where there is no such row.
 */
export function sqlRow<Row extends object = Record<string, unknown>>(
  sql: SqlRunner,
  { table, key, version = 'version' }: SqlRowOptions,
): Versioned<Row, RowChange, unknown> {
  const columns = Object.keys(key);
  const name = `${table}(${Object.values(key).join(', ')})`;
  for (const each of [version, ...columns]) checkName(name, each, /^[A-Za-z_]\w{0,62}$/);
  checkName(name, table, /^[A-Za-z_]\w{0,62}(\.[A-Za-z_]\w{0,62})?$/);
  if (columns.length === 0)
    throw new FenceUsageError(name, 'A row is found by the columns of its key; give one at least.');
  const isKey = columns.map((column) => `${column} = ?`).join(' AND ');

  return {
    name,
    async read() {
      const [row, second] = await sql.rows(`SELECT * FROM ${table} WHERE ${isKey}`, Object.values(key));
      if (row === undefined) throw new FenceUsageError(name, `There is no row ${name}.`);
      if (second !== undefined) throw new FenceUsageError(name, `The key of ${name} fits several rows.`);
      const found = row[version];
      if (found === undefined || found === null)
        throw new FenceUsageError(name, `${name} has no "${version}".`);
      return { value: row as Row, version: found };
    },
    async writeIf(change, found) {
      const written = Object.keys(change);
      for (const column of written) {
        checkName(name, column, /^[A-Za-z_]\w{0,62}$/);
        if (column === version || columns.includes(column)) {
          throw new FenceUsageError(
            name,
            `"${column}" is of the key or the version of ${name}, and is not written.`,
          );
        }
      }
      const set = [...written.map((column) => `${column} = ?`), `${version} = ${version} + 1`].join(', ');
      const changed = await sql.change(`UPDATE ${table} SET ${set} WHERE ${isKey} AND ${version} = ?`, [
        ...Object.values(change),
        ...Object.values(key),
        found as SqlValue,
      ]);
      return changed > 0;
    },
  };
}

function checkName(resource: string, name: string, form: RegExp): void {
  if (typeof name === 'string' && form.test(name)) return;
  throw new FenceUsageError(resource, `"${name}" is no plain name of a table or column.`);
}
