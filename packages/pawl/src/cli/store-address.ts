import type { Engine } from '../engines/engine.ts';
import { sqliteEngine } from '../engines/sqlite/index.ts';
import { InvalidArgumentError, StoreUnusableError } from '../errors.ts';

/** An engine that was opened from its address, with whatever it needed besides. */
export interface OpenedStore {
  readonly engine: Engine;
  close(): Promise<void>;
}

const OPENERS: Readonly<Record<string, (address: string) => Promise<OpenedStore>>> = {
  postgres: openPostgres,
  postgresql: openPostgres,
  redis: openRedis,
  rediss: openRedis,
  etcd: openEtcd,
  etcds: openEtcd,
  zookeeper: openZookeeper,
};

/** How the address of a store looks, for messages and the help. */
export const ADDRESS_FORMS =
  'a file, or postgres://…, redis://…, rediss://…, etcd://HOST:PORT,…, etcds://… or zookeeper://HOST:PORT,…/PATH';

/**
 * Opens the store at an address.
 *
 * @throws InvalidArgumentError for an address of no known kind; StoreUnusableError where the driver is not installed; what the engine throws.
 */
export async function openStore(address: string): Promise<OpenedStore> {
  const scheme = /^([A-Za-z][\w+.-]*):\/\//.exec(address)?.[1]?.toLowerCase();
  if (scheme === undefined) return alone(await sqliteEngine({ path: address }));
  const opener = Object.hasOwn(OPENERS, scheme) ? OPENERS[scheme] : undefined;
  if (opener === undefined) throw new InvalidArgumentError('db', ADDRESS_FORMS, withoutPassword(address));
  return opener(address);
}

function alone(engine: Engine): OpenedStore {
  return { engine, close: () => engine.close() };
}

async function openPostgres(address: string): Promise<OpenedStore> {
  const { Pool } = (await driver('pg', () => import('pg'))).default;
  const { postgresEngine } = await import('../engines/postgres/index.ts');
  const pool = new Pool({ connectionString: address, max: 4 });
  // An idle connection that is cut off is replaced at the next use.
  pool.on('error', () => {});
  try {
    const engine = await postgresEngine({ pool });
    const close = async () => {
      await engine.close();
      await pool.end();
    };
    return { engine, close };
  } catch (error) {
    await pool.end();
    throw error;
  }
}

async function openRedis(address: string): Promise<OpenedStore> {
  const { Redis } = await driver('ioredis', () => import('ioredis'));
  const { redisEngine } = await import('../engines/redis/index.ts');
  const client = new Redis(address, { maxRetriesPerRequest: 1 });
  // Whoever calls the engine is told.
  client.on('error', () => {});
  const engine = redisEngine({ client });
  const close = async () => {
    await engine.close();
    client.disconnect();
  };
  return { engine, close };
}

async function openEtcd(address: string): Promise<OpenedStore> {
  const { scheme, user, password, hosts, path } = addressParts(address);
  const { etcdEngine } = await driver('@grpc/grpc-js', () => import('../engines/etcd/index.ts'));
  const endpoints = hosts.map((host) => `${scheme === 'etcds' ? 'https' : 'http'}://${host}`);
  const account = user === undefined ? {} : { user, password: password ?? '' };
  return alone(await etcdEngine({ endpoints, ...account, ...(path === '' ? {} : { prefix: path }) }));
}

async function openZookeeper(address: string): Promise<OpenedStore> {
  const { user, password, hosts, path, minTtlMs } = addressParts(address);
  const { zookeeperEngine } = await import('../engines/zookeeper/index.ts');
  const connect = `${hosts.join(',')}${path === '' ? '' : `/${path}`}`;
  const auth =
    user === undefined ? {} : { auth: { scheme: 'digest', credentials: `${user}:${password ?? ''}` } };
  return alone(zookeeperEngine({ connect, ...auth, ...(minTtlMs === undefined ? {} : { minTtlMs }) }));
}

/** What an address of etcd or ZooKeeper says. */
export interface AddressParts {
  readonly scheme: string;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly hosts: readonly string[];
  readonly path: string;
  readonly minTtlMs: number | undefined;
}

/**
 * `SCHEME://[USER[:PASSWORD]@]HOST:PORT[,HOST:PORT…][/PATH][?minTtlMs=N]`: a URL names one host only, so it is no URL.
 *
 * @throws InvalidArgumentError
 */
export function addressParts(address: string): AddressParts {
  const form =
    /^(\w+):\/\/(?:([^:@/]*)(?::([^@/]*))?@)?([^/@?]+)(?:\/([^?]*))?(?:\?minTtlMs=(\d{1,9}))?$/.exec(address);
  const wrong = () => new InvalidArgumentError('db', ADDRESS_FORMS, withoutPassword(address));
  if (form === null) throw wrong();
  const [, scheme = '', user, password, list = '', path = '', minTtlMs] = form;
  const decoded = (text: string | undefined) => {
    try {
      return text === undefined ? undefined : decodeURIComponent(text);
    } catch {
      throw wrong();
    }
  };
  const hosts = list.split(',');
  if (hosts.includes('')) throw wrong();
  return {
    scheme: scheme.toLowerCase(),
    user: decoded(user),
    password: decoded(password),
    hosts,
    path: path.replace(/\/+$/, ''),
    minTtlMs: minTtlMs === undefined ? undefined : Number(minTtlMs),
  };
}

/** An address as it may be shown: rather too little of it than a part of a password, whatever that is made of. */
export function withoutPassword(address: string): string {
  return address.replace(/:(?!\/\/).*@/s, ':…@');
}

/** Loads the driver of a store. @throws StoreUnusableError where it is not installed. */
export async function driver<M>(name: string, load: () => Promise<M>): Promise<M> {
  try {
    return await load();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause;
    const detail = `its driver ${name} is not installed; install it beside pawl: npm install ${name}`;
    throw new StoreUnusableError('The store', detail, { cause });
  }
}
