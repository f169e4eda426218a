import { expect } from 'vitest';

/** What `read` returns; only an error of this class may come instead. */
export function readOr<T>(refusal: new (...args: never[]) => Error, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    expect(error).toBeInstanceOf(refusal);
    return undefined;
  }
}
