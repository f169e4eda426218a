import { InvalidArgumentError } from '../errors.ts';

/**
 * Reads `items` together, or in halves where that is more than the store takes in one request: a store says so by an
 * `InvalidArgumentError`.
 */
export async function inHalves<T, R>(
  items: readonly T[],
  read: (items: readonly T[]) => Promise<readonly R[]>,
): Promise<readonly R[]> {
  try {
    return await read(items);
  } catch (error) {
    if (!(error instanceof InvalidArgumentError) || items.length < 2) throw error;
  }
  const half = Math.ceil(items.length / 2);
  return [...(await inHalves(items.slice(0, half), read)), ...(await inHalves(items.slice(half), read))];
}
