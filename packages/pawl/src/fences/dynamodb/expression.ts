import { MAX_TOKEN, type Token } from '../../token.ts';
import type { Claim } from '../bearer.ts';

/* The names that the fence's part of an expression uses; a caller's own must be others. */
export const ATTRIBUTE = '#pawlToken';
export const TOKEN = ':pawlToken';
export const FLOOR = ':pawlFloor';

/** A token as a text of so many digits that texts compare as tokens do. A number of DynamoDB would hold it, but a document client could not read it. */
export function tokenText(token: Token): string {
  return token.toString().padStart(MAX_TOKEN.toString().length, '0');
}

/** The fence's condition, and that of the caller. */
export function conditionOf({ floor }: Claim, own: string | undefined): string {
  const fence =
    floor > 0n
      ? `(${ATTRIBUTE} BETWEEN ${FLOOR} AND ${TOKEN})`
      : `(attribute_not_exists(${ATTRIBUTE}) OR ${ATTRIBUTE} <= ${TOKEN})`;
  return own === undefined ? fence : `(${own}) AND ${fence}`;
}

/** An update that also writes the token. An expression has at most one SET, and no attribute may be named so without a placeholder. */
export function settingToken(update = ''): string {
  const set = `SET ${ATTRIBUTE} = ${TOKEN}`;
  const withSet = update.replace(/(^|\s)SET\s/i, `$1${set}, `);
  return withSet === update ? `${set} ${update}`.trimEnd() : withSet;
}
