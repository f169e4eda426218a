/**
 * A fencing token: one integer per lock (or per slot of a semaphore) that only goes up. The resource refuses a
 * write whose token is lower than the highest it has honoured. From 1 to {@link MAX_TOKEN}; a decimal string in JSON.
 */
export type Token = bigint;

/** The highest token: what a signed 64-bit integer of a database holds. */
export const MAX_TOKEN: Token = 2n ** 63n - 1n;

/** Whether `value` is a token: a `bigint` from 1 to {@link MAX_TOKEN}. */
export function isToken(value: unknown): value is Token {
  return typeof value === 'bigint' && value >= 1n && value <= MAX_TOKEN;
}

/**
 * Reads a token from its JSON form.
 *
 * @param text a decimal string without sign, leading zero or white space, such as `"42"`.
 * @returns the token, or `undefined` where `text` is anything else.
 */
export function parseToken(text: unknown): Token | undefined {
  if (typeof text !== 'string' || !/^[1-9][0-9]{0,18}$/.test(text)) return undefined;
  const token = BigInt(text);
  return isToken(token) ? token : undefined;
}
