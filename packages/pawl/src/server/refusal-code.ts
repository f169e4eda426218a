import { isPawlError } from '../errors.ts';

/** The code of an error that a client may hear of; `undefined` for a fault of the server. */
export function refusalCode(error: unknown): string | undefined {
  return isPawlError(error) ? error.code : undefined;
}
