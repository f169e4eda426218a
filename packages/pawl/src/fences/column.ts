import type { Token } from '../token.ts';
import { StaleTokenError } from './errors.ts';

/*
 * A column fence writes nothing for three reasons: the row has a higher token, there is no such row, or another condition of the statement left it
 * out. What stands in the column only goes up, so a look at it afterwards tells the first from the others.
 */

/**
 * @param written how many rows were written.
 * @param read finds the token in the row; `undefined` where there is none.
 * @returns whether something was written.
 * @throws StaleTokenError
 */
export async function settleColumn(
  resource: string,
  token: Token,
  written: number | null,
  read: () => Promise<bigint | undefined>,
): Promise<boolean> {
  if (written !== null && written > 0) return true;
  const highest = await read();
  if (highest !== undefined && highest > token) throw new StaleTokenError(resource, token, highest);
  return false;
}

/** The one value of a query for the highest token. It is asked for as text, since a number does not hold every token. */
export function highestInColumn(rows: readonly { readonly highest: string | null }[]): bigint | undefined {
  const highest = rows[0]?.highest;
  return highest == null ? undefined : BigInt(highest);
}
