/** Where the records of the algorithm live in an engine: every key the core reads or writes is made here. */

import { StoreCorruptError } from '../errors.ts';
import { MAX_TOKEN, type Token } from '../token.ts';

const encoder = new TextEncoder();
/** What stands in keys as it is. */
const PLAIN = /^[A-Za-z0-9_.:-]+$/;

/** The longest lock name, in bytes of UTF-8. */
export const MAX_NAME_BYTES = 512;

/** What is wrong with `name` as the name of a lock, in words, or `undefined` if nothing is. Names are compared byte by byte. */
export function nameProblem(name: unknown, maxBytes = MAX_NAME_BYTES): string | undefined {
  if (typeof name !== 'string') return 'is not a string';
  if (name.length === 0) return 'is empty';
  if (!name.isWellFormed()) return 'is no well-formed Unicode (it has half a surrogate pair)';
  // A UTF-16 unit takes three bytes at most, so a short name need not be measured.
  if (name.length * 3 <= maxBytes) return undefined;
  const bytes = encoder.encode(name).length;
  return bytes > maxBytes ? `has ${bytes} bytes of UTF-8, more than ${maxBytes}` : undefined;
}

/**
 * Writes a name into a key: ASCII only, reversible, no `/`. A name that is a prefix of another stays one, so a
 * prefix of names can be listed as a prefix of keys.
 */
export function encodeName(name: string): string {
  if (PLAIN.test(name)) return name;
  let encoded = '';
  for (const byte of encoder.encode(name)) {
    const char = String.fromCharCode(byte);
    encoded += PLAIN.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded;
}

/** The inverse of {@link encodeName}. @throws StoreCorruptError where that wrote something else. */
export function decodeName(encoded: string): string {
  if (PLAIN.test(encoded)) return encoded;
  try {
    const name = decodeURIComponent(encoded);
    if (name !== '' && encodeName(name) === encoded) return name;
  } catch {
    // As below.
  }
  throw new StoreCorruptError('A key', `"${encoded}" is no name as Pawl writes it`);
}

export const LOCK_PREFIX = 'lock/';
export const BREAK_PREFIX = 'break/';
export const LAST_BREAK_PREFIX = 'broken/';

/** The lock's record: its holders and the counters of its queue. Absent while the lock is idle. */
export function lockKey(name: string): string {
  return LOCK_PREFIX + encodeName(name);
}

/** The last forced release of the lock, for whoever looks at it later: it stays, one for each lock that was ever broken. */
export function lastBreakKey(name: string): string {
  return LAST_BREAK_PREFIX + encodeName(name);
}

/** All forced releases of a lock that its holders may still ask about, that of the newest grant first. */
export function breakPrefix(name: string): string {
  return `${BREAK_PREFIX}${encodeName(name)}/`;
}

/** The forced release of one grant. */
export function breakKey(name: string, token: Token, slot: number): string {
  return `${breakPrefix(name)}${String(MAX_TOKEN - token).padStart(19, '0')}-${slot}`;
}

/** All waiters of a lock, in the order of their tickets. */
export function waitPrefix(name: string): string {
  return `wait/${encodeName(name)}/`;
}

/** One waiter. The ticket is padded so that the order of keys is the order of tickets. */
export function waitKey(name: string, ticket: number): string {
  return waitPrefix(name) + String(ticket).padStart(16, '0');
}

/** All requests of a session that wait, hold or are remembered: what its end has to clean up. */
export function requestPrefix(session: string): string {
  return `req/${session}/`;
}

export function requestKey(session: string, request: string): string {
  return requestPrefix(session) + encodeName(request);
}

/** The name in a key made by {@link lockKey}. */
export function nameOfKey(key: string): string {
  return decodeName(key.slice(key.indexOf('/') + 1));
}

/** The request id in a key made by {@link requestKey}. */
export function requestOfKey(key: string): string {
  return decodeName(key.slice(key.lastIndexOf('/') + 1));
}
