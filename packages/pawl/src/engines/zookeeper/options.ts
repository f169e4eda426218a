import type { ConnectionOptions } from 'node:tls';
import { type Clock, systemClock } from '../../clock.ts';
import { InvalidArgumentError } from '../../errors.ts';
import { DEFAULT_MIN_TTL_MS } from './guarantees.ts';
import type { Acl } from './protocol.ts';
import { type Access, parseConnect, Servers } from './servers.ts';

const DEFAULT_MAX_SESSIONS = 1000;
const DEFAULT_PATH = '/pawl';
const ALL_PERMISSIONS = 31;

export interface ZooKeeperEngineOptions {
  /** The servers and the path under which everything is stored: `host:port,host:port/path`. Port 2181 and path `/pawl` unless given. */
  readonly connect: string;
  /** Said on each connection, such as `{ scheme: 'digest', credentials: 'user:password' }`. */
  readonly auth?: { readonly scheme: string; readonly credentials: string };
  /** Who may use the nodes: whoever has the same `auth` if there is one, else anybody, unless set. */
  readonly acl?: readonly Acl[];
  /** Encrypts the connections, with these options of `node:tls`. */
  readonly tls?: ConnectionOptions;
  /** The shortest session that the servers grant, in ms: their `minSessionTimeout`, which is two `tickTime`s unless set. 4000 unless set. */
  readonly minTtlMs?: number;
  /** So many sessions are kept at most, each on a connection of its own; 1000 unless set. See also the servers' `maxClientCnxns`. */
  readonly maxSessions?: number;
  readonly clock?: Clock;
}

/** The options after the check, with defaults in place. */
export interface CheckedOptions {
  readonly access: Access;
  readonly root: string;
  readonly acl: readonly Acl[];
  readonly minTtlMs: number;
  readonly maxSessions: number;
  readonly clock: Clock;
}

/** @throws InvalidArgumentError */
export function checkOptions(options: ZooKeeperEngineOptions): CheckedOptions {
  if (typeof options !== 'object' || options === null)
    throw new InvalidArgumentError('options', 'an object', options);
  const { connect, auth, acl, tls, clock = systemClock } = options;
  const { minTtlMs = DEFAULT_MIN_TTL_MS, maxSessions = DEFAULT_MAX_SESSIONS } = options;
  const { servers, path = DEFAULT_PATH } = parseConnect(connect);
  if (auth !== undefined && !(isText(auth?.scheme) && isText(auth.credentials))) {
    throw new InvalidArgumentError('auth', '{ scheme, credentials } with two texts', auth);
  }
  if (acl !== undefined && !(Array.isArray(acl) && acl.length > 0 && acl.every(isAcl))) {
    throw new InvalidArgumentError('acl', 'a list of { permissions: 1 to 31, scheme, id }', acl);
  }
  if (tls !== undefined && (typeof tls !== 'object' || tls === null)) {
    throw new InvalidArgumentError('tls', 'an object of options', tls);
  }
  checkCount('minTtlMs', minTtlMs);
  checkCount('maxSessions', maxSessions);
  const own = auth === undefined ? { scheme: 'world', id: 'anyone' } : { scheme: 'auth', id: '' };
  return {
    access: { servers: new Servers(servers), tls, auth },
    root: path,
    acl: acl ?? [{ permissions: ALL_PERMISSIONS, ...own }],
    minTtlMs,
    maxSessions,
    clock,
  };
}

function checkCount(parameter: string, value: unknown): void {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return;
  throw new InvalidArgumentError(parameter, 'a whole number from 1', value);
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function isAcl(acl: unknown): boolean {
  if (typeof acl !== 'object' || acl === null) return false;
  const { permissions, scheme, id } = acl as Partial<Record<string, unknown>>;
  const allowed = typeof permissions === 'number' && Number.isInteger(permissions) && permissions >= 1;
  return allowed && permissions <= ALL_PERMISSIONS && isText(scheme) && typeof id === 'string';
}
