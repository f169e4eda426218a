import { MAX_HOLDERS } from '../core/holders.ts';
import { nameProblem } from '../core/names.ts';
import type { Owner } from '../core/records.ts';
import { InvalidArgumentError } from '../errors.ts';

/** What a lock service takes as arguments: the same at the client, which asks first, and at the server, which trusts nobody. */

/** The longest TTL, wait and lock-delay, in ms: 30 days. */
export const LONGEST_MS = 30 * 24 * 3_600_000;
/** The most locks that one acquire takes. */
export const MOST_LOCKS = 64;
/** The most bytes of JSON that an owner's metadata may have: it stands in every lock's record. */
export const OWNER_BYTES = 1024;

/** @throws InvalidArgumentError where `name` is no lock name: 1 to 512 bytes of well-formed Unicode. */
export function checkName(name: unknown, parameter = 'name'): asserts name is string {
  const problem = nameProblem(name);
  if (problem === undefined) return;
  throw new InvalidArgumentError(parameter, `a string of 1 to 512 bytes of UTF-8 (it ${problem})`, name);
}

/** @throws InvalidArgumentError where `value` is no whole number from `leastMs` to `mostMs`. */
export function checkDuration(
  parameter: string,
  value: unknown,
  leastMs: number,
  mostMs = LONGEST_MS,
): asserts value is number {
  if (Number.isSafeInteger(value) && Number(value) >= leastMs && Number(value) <= mostMs) return;
  const most = mostMs === LONGEST_MS ? `${LONGEST_MS} (30 days)` : String(mostMs);
  throw new InvalidArgumentError(parameter, `a whole number of ms from ${leastMs} to ${most}`, value);
}

/** @throws InvalidArgumentError where `permits` is no size of a semaphore. */
export function checkPermits(permits: unknown): asserts permits is number {
  if (Number.isSafeInteger(permits) && Number(permits) >= 1 && Number(permits) <= MAX_HOLDERS) return;
  throw new InvalidArgumentError('permits', `a whole number from 1 to ${MAX_HOLDERS}`, permits);
}

/** @throws InvalidArgumentError where `owner` is no object of strings, or is too large together with `addTo`. */
export function checkOwner(owner: unknown, addTo: Owner = {}): Owner {
  if (owner === undefined) return addTo;
  const isObject = typeof owner === 'object' && owner !== null && !Array.isArray(owner);
  if (!isObject || Object.values(owner).some((value) => typeof value !== 'string')) {
    throw new InvalidArgumentError('owner', 'an object whose values are strings', owner);
  }
  const whole: Owner = { ...addTo, ...owner };
  if (isSurelySmall(whole)) return whole;
  const bytes = Buffer.byteLength(JSON.stringify(whole));
  if (bytes > OWNER_BYTES) {
    throw new InvalidArgumentError('owner', `at most ${OWNER_BYTES} bytes as JSON (it has ${bytes})`, owner);
  }
  return whole;
}

/** A UTF-16 unit takes six bytes of JSON at most, so a short owner need not be measured. */
function isSurelySmall(owner: Owner): boolean {
  let bytes = 2;
  for (const key of Object.keys(owner)) bytes += 6 + (key.length + (owner[key]?.length ?? 0)) * 6;
  return bytes <= OWNER_BYTES;
}
