import { type Bearer, checkResource, tokenOf } from '../bearer.ts';
import { highestInColumn, settleColumn } from '../column.ts';
import { FenceUsageError } from '../errors.ts';
import { identifier, rowsOf } from './client.ts';

/** What a column fence calls on a connection or pool, to find out why nothing was written. */
export interface PostgresReader {
  query(text: string, values: unknown[]): Promise<unknown>;
}

/** The parts of an UPDATE of one row whose own column is its fence. */
export interface ColumnFence {
  /** For the SET clause: `"fence" = $n`. */
  readonly set: string;
  /** For the WHERE clause; a row without a token yet is let through. */
  readonly where: string;
  /** To put at the end of the statement's values. */
  readonly values: readonly [token: string];
  /**
   * Tells why nothing was written. Costs nothing where something was.
   *
   * @param written the `rowCount` of the UPDATE.
   * @param from what follows FROM to find the same row, without the fence: `invoice WHERE id = $1`.
   * @returns true where it was written, false where there is no such row.
   * @throws StaleTokenError where the row has honoured a higher token.
   */
  settle(
    client: PostgresReader,
    written: number | null,
    from: string,
    values: readonly unknown[],
  ): Promise<boolean>;
}

/**
 * A fence for writes of one statement: `UPDATE t SET …, <set> WHERE id = $1 AND <where>`. The token stands in the row itself, in a column of type
 * `bigint`, and there is no other state.
 *
 * @param options `position`: the number of the statement's parameter that will be the token. `column`: `fence` unless set.
 * @throws MissingTokenError, InvalidTokenError, FenceUsageError
 */
export function columnFence(
  resource: string,
  bearer: Bearer,
  options: { readonly position: number; readonly column?: string },
): ColumnFence {
  checkResource(resource);
  const token = tokenOf(resource, bearer);
  const { position, column = 'fence' } = options;
  if (!Number.isInteger(position) || position < 1) {
    throw new FenceUsageError(resource, `position must be the number of a parameter, but was ${position}.`);
  }
  const name = identifier(column);
  return {
    set: `${name} = $${position}::bigint`,
    where: `coalesce(${name}, 0) <= $${position}::bigint`,
    values: [token.toString()],
    settle: (client, written, from, values) =>
      settleColumn(resource, token, written, async () => {
        const text = `SELECT max(coalesce(${name}, 0))::text AS highest FROM ${from}`;
        return highestInColumn(rowsOf(await client.query(text, [...values])));
      }),
  };
}
