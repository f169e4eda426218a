import { parseToken } from '../../token.ts';
import type { Bearer } from '../bearer.ts';

/** The header of a request that carries a token, or a signed sequencer. */
export const FENCING_TOKEN = 'Fencing-Token';

/**
 * What the header carries, to pass on to a fence: a handler that writes to a database checks it there once more.
 *
 * @param header its value, as it came.
 * @returns a token; or the text itself where it is none, for a fence that takes sequencers (others refuse it).
 */
export function bearerOf(header: string | readonly string[] | undefined): Bearer {
  if (header === undefined || header === '') return undefined;
  const text = typeof header === 'string' ? header : header.join(', ');
  return parseToken(text) ?? text;
}
