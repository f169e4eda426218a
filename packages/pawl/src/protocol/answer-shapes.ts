import { StoreCorruptError } from '../errors.ts';
import type { Method } from './calls.ts';

type Fields = Readonly<Record<string, unknown>>;

/** @throws StoreCorruptError where this is no answer to the method: then nobody acts on it. */
export function checkAnswer(method: Method, value: unknown): void {
  if (SHAPES[method](value)) return;
  throw new StoreCorruptError('The answer of the server', `it is none to ${method}`);
}

/** What an answer to each method has to look like, as far as a client acts on it. Grants and states are looked at where they are read. */
const SHAPES: Readonly<Record<Method, (value: unknown) => boolean>> = {
  authenticate: isAnything,
  ping: isAnything,
  listen: isAnything,
  unlisten: isAnything,
  closeSession: isAnything,
  openSession: (value) => typeof value === 'string' && value !== '',
  keepAlive: (value) => isObject(value) && typeof value.alive === 'boolean' && isListOf(value.gone, isHold),
  acquire: isOneOf({
    granted: hasGrants,
    queued: ({ ahead }) => isCount(ahead),
    held: hasName,
    finished: ({ how }) => typeof how === 'string',
    mismatch: isAnything,
    sessionEnded: isAnything,
    shape: hasName,
    queueFull: (answer) => hasName(answer) && isCount(answer.limit),
  }),
  release: isOneOf({ released: isAnything, alreadyReleased: isAnything, notHeld: isAnything }),
  cancel: isOneOf({ cancelled: ({ wasGranted }) => typeof wasGranted === 'boolean' }),
  transfer: isOneOf({ transferred: hasGrants, notHeld: isAnything }),
  breakHold: isOneOf({ broken: ({ owner }) => isObject(owner), notHeld: isAnything }),
  inspect: isState,
  // A page that promises more and has nothing would be asked for again, for ever.
  list: (value) =>
    isObject(value) &&
    isListOf(value.locks, isState) &&
    (value.more === false || (value.more === true && (value.locks as unknown[]).length > 0)),
  position: (value) => value === null || isCount(value),
};

function isOneOf(kinds: Readonly<Record<string, (answer: Fields) => boolean>>): (value: unknown) => boolean {
  return (value) =>
    isObject(value) &&
    typeof value.kind === 'string' &&
    Object.hasOwn(kinds, value.kind) &&
    kinds[value.kind]?.(value) === true;
}

function isState(value: unknown): boolean {
  return (
    isObject(value) &&
    hasName(value) &&
    isCount(value.waiting) &&
    isListOf(value.waiters, isObject) &&
    isListOf(value.holders, isObject) &&
    (value.lastBreak === null || isObject(value.lastBreak))
  );
}

function hasGrants({ grants }: Fields): boolean {
  return isListOf(grants, isGrant) && (grants as unknown[]).length > 0;
}

function isGrant(value: unknown): boolean {
  return isObject(value) && hasName(value) && isCount(value.slot) && typeof value.mode === 'string';
}

function isHold(value: unknown): boolean {
  return isObject(value) && hasName(value) && typeof value.request === 'string';
}

function hasName({ name }: Fields): boolean {
  return typeof name === 'string';
}

function isListOf(value: unknown, fits: (value: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(fits);
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isAnything(): boolean {
  return true;
}
