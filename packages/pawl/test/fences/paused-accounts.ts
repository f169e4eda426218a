import { readFile, writeFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';
import type { Lease } from '../../src/client/lease.ts';
import { fileFence } from '../../src/fences/files/index.ts';
import { fencedFetch } from '../../src/fences/http/index.ts';
import { StaleTokenError } from '../../src/fences/index.ts';
import { redisFence } from '../../src/fences/redis/index.ts';
import { sqliteFence } from '../../src/fences/sqlite.ts';

/** The account of the stories of pauses, with the fence and without. */
export interface Account {
  raise(lease: Lease): Promise<void>;
  read(): Promise<number>;
  fencedWrite(lease: Lease, value: number): Promise<unknown>;
  write(value: number): Promise<unknown>;
  close(): Promise<unknown>;
}

/** @param url of the Redis. */
export async function inRedis(url: string): Promise<Account> {
  const redis = new Redis(url);
  const fence = redisFence(redis);
  return {
    raise: (lease) => fence.raise('account:0', lease),
    read: async () => Number(await redis.get('account:0')),
    fencedWrite: (lease, value) => fence.commands('account:0', lease, [['SET', 'account:0', value]]),
    write: (value) => redis.set('account:0', value),
    close: () => redis.quit(),
  };
}

/** @param path of the database. */
export async function inSqlite(path: string): Promise<Account> {
  const db = new DatabaseSync(path, { timeout: 30_000 });
  const fence = sqliteFence(db);
  const read = db.prepare('SELECT value FROM account WHERE id = 0');
  const update = db.prepare('UPDATE account SET value = ? WHERE id = 0');
  return {
    raise: async (lease) => fence.raise('account:0', lease),
    read: async () => Number(read.get()?.value),
    fencedWrite: async (lease, value) => fence.transaction('account:0', lease, () => update.run(value)),
    write: async (value) => update.run(value),
    close: async () => db.close(),
  };
}

/** @param path of the file. */
export async function inFile(path: string): Promise<Account> {
  const fence = fileFence(path);
  return {
    raise: (lease) => fence.raise(lease),
    read: async () => Number(await readFile(path, 'utf8')),
    fencedWrite: (lease, value) => fence.write(lease, `${value}`),
    write: (value) => writeFile(path, `${value}`),
    close: async () => {},
  };
}

/** @param url of the server; it has the account at `/fenced` and at `/open`, and `/fenced/raise` raises the fence. */
export async function overHttp(url: string): Promise<Account> {
  const put = async (path: string, value: string, send: typeof fetch) => {
    const response = await send(url + path, { method: 'PUT', body: value });
    if (response.ok) return;
    const { resource, token, highest } = (await response.json()) as Record<string, string>;
    if (response.status !== 409) throw new Error(`answered with ${response.status}`);
    throw new StaleTokenError(String(resource), BigInt(token ?? 0), BigInt(highest ?? 0));
  };
  // The token alone: a lease that has ended aborts its requests, and here they are to come too late.
  const under = ({ token }: Lease) => fencedFetch({ token });
  return {
    raise: (lease) => put('/fenced/raise', '', under(lease)),
    read: async () => Number(await (await fetch(`${url}/open`)).text()),
    fencedWrite: (lease, value) => put('/fenced', `${value}`, under(lease)),
    write: (value) => put('/open', `${value}`, fetch),
    close: async () => {},
  };
}
