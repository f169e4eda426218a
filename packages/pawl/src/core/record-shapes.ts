import { parseToken } from '../token.ts';
import type { News } from './commands.ts';
import { BREAK_PREFIX } from './names.ts';

/** What stored records have to look like: a record that anybody else wrote must not pass for one of ours. */

type Fields = Readonly<Record<string, unknown>>;

export function isLockRecord(value: Fields): boolean {
  return (
    isPermits(value.permits) &&
    isListOf(value.holders, isHolder) &&
    isCount(value.nextTicket) &&
    isCount(value.waiting) &&
    isCount(value.nextShared)
  );
}

export function isWaiter(value: Fields): boolean {
  return (
    isApplicant(value) &&
    isCount(value.ticket) &&
    typeof value.barging === 'boolean' &&
    typeof value.several === 'boolean'
  );
}

export function isRequestRecord(value: Fields): boolean {
  return (
    isOneOf(value.state, STATES) &&
    isListOf(value.locks, isRequestedLock) &&
    isCount(value.lockDelayMs) &&
    (value.inbox === undefined || typeof value.inbox === 'string') &&
    (value.how === null || isOneOf(value.how, ENDINGS)) &&
    (value.breaks === undefined || isBreakKeys(value.breaks))
  );
}

/** Its token is read apart. */
export function isBreakRecord(value: Fields): boolean {
  return (
    isCount(value.slot) &&
    typeof value.by === 'string' &&
    typeof value.reason === 'string' &&
    typeof value.atMs === 'number' &&
    isOwner(value.owner)
  );
}

/** The tokens of its grants are still texts. */
export function isNews(value: unknown): value is News {
  if (!isObject(value) || !isObject(value.to)) return false;
  if (typeof value.to.session !== 'string' || typeof value.to.request !== 'string') return false;
  switch (value.kind) {
    case 'granted':
      return isListOf(value.grants, isGrant);
    case 'claim':
    case 'cancelled':
      return true;
    case 'broken':
      return typeof value.name === 'string' && typeof value.reason === 'string';
    default:
      return false;
  }
}

const MODES = ['exclusive', 'shared'];
const STATES = ['waiting', 'held', 'done'];
const ENDINGS = ['released', 'cancelled', 'broken', 'transferred'];

/** Its token is read apart. */
function isHolder(value: Fields): boolean {
  return isApplicant(value) && isCount(value.slot) && typeof value.ghost === 'boolean';
}

/** What holders and waiters have in common. */
function isApplicant(value: Fields): boolean {
  return (
    typeof value.session === 'string' &&
    typeof value.request === 'string' &&
    isOneOf(value.mode, MODES) &&
    isOwner(value.owner) &&
    typeof value.inbox === 'string' &&
    isCount(value.lockDelayMs)
  );
}

function isRequestedLock(value: Fields): boolean {
  return (
    typeof value.name === 'string' &&
    isOneOf(value.mode, MODES) &&
    isPermits(value.permits) &&
    (value.ticket === null || isCount(value.ticket))
  );
}

function isGrant(value: Fields): boolean {
  return (
    typeof value.name === 'string' &&
    isOneOf(value.mode, MODES) &&
    isCount(value.slot) &&
    (value.token === undefined || parseToken(value.token) !== undefined)
  );
}

function isListOf(value: unknown, fits: (value: Fields) => boolean): boolean {
  return Array.isArray(value) && value.every((each) => isObject(each) && fits(each));
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isOwner(value: unknown): boolean {
  if (!isObject(value)) return false;
  for (const field in value) if (typeof value[field] !== 'string') return false;
  return true;
}

/** They will be deleted, so they must not be keys of anything else. */
function isBreakKeys(value: unknown): boolean {
  return (
    Array.isArray(value) && value.every((key) => typeof key === 'string' && key.startsWith(BREAK_PREFIX))
  );
}

function isPermits(value: unknown): boolean {
  return value === null || (isCount(value) && value !== 0);
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isOneOf(value: unknown, words: readonly string[]): boolean {
  return typeof value === 'string' && words.includes(value);
}
