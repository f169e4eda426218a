import type { AskedLock } from '../core/commands.ts';
import { InvalidArgumentError } from '../errors.ts';
import type { AcquireOptions } from '../node/service.ts';
import { checkName, LONGEST_MS, MOST_LOCKS } from './arguments.ts';
import { type Call, LONGEST_PAGE, MOST_HOLDS, type NamedToken } from './calls.ts';
import { Fields } from './fields.ts';
import { readTraceparent } from './traceparent.ts';

/** What is read as a bearer token at most. */
const MOST_TOKEN_BYTES = 4096;

/**
 * Reads a request that came from outside. A `traceparent` that is none is left out.
 *
 * @throws InvalidArgumentError where it is none, or a field of it is no good.
 */
export function readCall(method: unknown, params: unknown, traceparent?: unknown): Call {
  const call = readAsked(method, params);
  if (typeof traceparent !== 'string' || readTraceparent(traceparent) === undefined) return call;
  return { ...call, traceparent };
}

function readAsked(method: unknown, params: unknown): Call {
  const fields = new Fields(params ?? {});
  switch (method) {
    case 'acquire':
      return { method, id: fields.requestId(), locks: readLocks(fields), options: readOptions(fields) };
    case 'release':
      return { method, id: fields.requestId(), grants: readGrants(fields), forget: forget(fields) };
    case 'keepAlive':
      return { method, session: fields.session(), holds: fields.list('holds', 0, MOST_HOLDS, readHold) };
    case 'openSession':
      return { method, ttlMs: fields.durationOr('ttlMs', 1, LONGEST_MS, undefined) };
    case 'closeSession':
    case 'listen':
    case 'unlisten':
      return { method, session: fields.session() };
    case 'cancel':
      return {
        method,
        id: fields.requestId(),
        names: fields.list('names', 1, MOST_LOCKS, readName),
        forget: forget(fields),
      };
    case 'transfer':
      return {
        method,
        id: fields.requestId(),
        grants: readGrants(fields),
        to: new Fields(fields.raw('to'), 'to').requestId(),
        owner: fields.owner(),
        forget: forget(fields),
      };
    case 'breakHold':
      return {
        method,
        name: fields.name('name'),
        token: fields.token(),
        slot: fields.has('slot') ? fields.integer('slot', 0, Number.MAX_SAFE_INTEGER) : undefined,
        reason: fields.name('reason'),
        by: fields.name('by'),
      };
    case 'inspect':
      return { method, name: fields.name('name') };
    case 'list':
      return readList(fields);
    case 'position':
      return { method, id: fields.requestId(), name: fields.name('name') };
    case 'ping':
      return { method };
    case 'authenticate':
      return { method, token: fields.text('token', MOST_TOKEN_BYTES) };
    default:
      throw new InvalidArgumentError('method', 'a method of this protocol', method);
  }
}

/** Reads what to list; a page is never longer than {@link LONGEST_PAGE}. */
export function readList(fields: Fields): Call & { readonly method: 'list' } {
  const prefix = fields.raw('prefix') ?? '';
  if (prefix !== '') checkName(prefix, 'prefix');
  const limit = fields.has('limit') ? fields.integer('limit', 1, Number.MAX_SAFE_INTEGER) : LONGEST_PAGE;
  const after = fields.has('after') ? fields.name('after') : undefined;
  return { method: 'list', prefix, limit: Math.min(limit, LONGEST_PAGE), after };
}

/** Reads the settings of an acquire but for whether to wait, which the two protocols say differently. */
export function readOptions(fields: Fields, wait = fields.booleanOr('wait', false)): AcquireOptions {
  return {
    wait,
    owner: fields.owner(),
    lockDelayMs: fields.durationOr('lockDelayMs', 0, LONGEST_MS, 0),
    barging: fields.booleanOr('barging', false),
  };
}

/** Reads one lock that is asked for. */
export function readLock(fields: Fields): AskedLock {
  const lock: AskedLock = {
    name: fields.name('name'),
    mode: fields.modeOr('exclusive'),
    permits: fields.permits(),
  };
  if (lock.permits !== null && lock.mode === 'shared')
    throw new InvalidArgumentError('mode', '"exclusive" for a semaphore', lock.mode);
  return lock;
}

function readLocks(fields: Fields): AskedLock[] {
  const locks = fields.list('locks', 1, MOST_LOCKS, (value) => readLock(new Fields(value, 'locks')));
  checkNoneTwice('locks', locks);
  return locks;
}

function readGrants(fields: Fields): NamedToken[] {
  const grants = fields.list('grants', 1, MOST_LOCKS, (value) => {
    const grant = new Fields(value, 'grants');
    return { name: grant.name('name'), token: grant.token() };
  });
  checkNoneTwice('grants', grants);
  return grants;
}

function checkNoneTwice(field: string, locks: readonly { readonly name: string }[]): void {
  if (locks.length > 1 && new Set(locks.map(({ name }) => name)).size < locks.length)
    throw new InvalidArgumentError(field, 'a list that names no lock twice', locks);
}

function readHold(value: unknown): { request: string; name: string } {
  const hold = new Fields(value, 'holds');
  return { request: hold.name('request'), name: hold.name('name') };
}

function readName(value: unknown): string {
  checkName(value, 'names');
  return value;
}

function forget(fields: Fields): boolean {
  return fields.booleanOr('forget', false);
}
