import { type Bearer, checkResource, tokenOf } from '../bearer.ts';
import { highestInColumn, settleColumn } from '../column.ts';
import { identifier, type MysqlClient } from './client.ts';

/** The parts of an UPDATE of one row whose own column is its fence. */
export interface ColumnFence {
  /** For the SET clause, with one placeholder: `` `fence` = ? ``. */
  readonly set: string;
  /** For the WHERE clause, with one placeholder; a row without a token yet is let through. */
  readonly where: string;
  /** The value for each of the two placeholders. */
  readonly token: string;
  /**
   * Tells why nothing was written. Costs nothing where something was.
   *
   * @param written the `affectedRows` of the UPDATE. Without the driver's flag FOUND_ROWS, which it has unless told otherwise, a row that stays as it is does not count.
   * @param from what follows FROM to find the same row, without the fence: `invoice WHERE id = ?`.
   * @returns true where it was written, false where there is no such row.
   * @throws StaleTokenError where the row has honoured a higher token.
   */
  settle(client: MysqlClient, written: number, from: string, values: readonly unknown[]): Promise<boolean>;
}

/**
 * A fence for writes of one statement: `UPDATE t SET …, <set> WHERE id = ? AND <where>`. The token stands in the row itself, in a column of type
 * `BIGINT`, and there is no other state.
 *
 * @param options `column`: `fence` unless set.
 * @throws MissingTokenError, InvalidTokenError, FenceUsageError
 */
export function columnFence(
  resource: string,
  bearer: Bearer,
  options: { readonly column?: string } = {},
): ColumnFence {
  checkResource(resource);
  const token = tokenOf(resource, bearer);
  const name = identifier(options.column ?? 'fence');
  return {
    set: `${name} = CAST(? AS SIGNED)`,
    where: `COALESCE(${name}, 0) <= CAST(? AS SIGNED)`,
    token: token.toString(),
    settle: (client, written, from, values) =>
      settleColumn(resource, token, written, async () => {
        // Locked, so that it is the present row that is read, and not the transaction's snapshot.
        const sql = `SELECT CAST(COALESCE(${name}, 0) AS CHAR) AS highest FROM ${from} LIMIT 1 FOR UPDATE`;
        const [rows] = await client.query(sql, [...values]);
        return highestInColumn(rows as { highest: string | null }[]);
      }),
  };
}
