import { Redis } from 'ioredis';
import { expect } from 'vitest';
import {
  type Redlock,
  type RedlockAcquire,
  type RedlockClient,
  type RedlockOptions,
  redlock,
} from '../../src/engines/redlock/index.ts';
import { RedisServer } from './redis-server.ts';

/* Five Redis of the tests' own, and what is done to them. */

export const TTL_MS = 60_000;
export const servers = Array.from({ length: 5 }, () => new RedisServer());
const down = new Set<RedisServer>();
const opened: Redis[] = [];
/** One connection to each server, for most tests. */
export let redis: Redis[] = [];
let names = 0;

export function newName(): string {
  names += 1;
  return `lock-${names}`;
}

export function connect(): Redis[] {
  const options = { host: '127.0.0.1', maxRetriesPerRequest: 1, retryStrategy: () => 20 };
  const clients = servers.map(({ port }) => new Redis({ port, ...options }));
  for (const client of clients) client.on('error', () => {});
  opened.push(...clients);
  return clients;
}

/** Patient with a loaded machine, unless told otherwise. */
export function locks(options: Partial<RedlockOptions> = {}): Redlock {
  return redlock({ clients: redis, retryDelayMs: 20, instanceTimeoutMs: 5000, ...options });
}

export function acquire(name: string, options: Partial<RedlockAcquire> = {}) {
  return locks().acquire(name, { ttlMs: TTL_MS, ...options });
}

export function tryAcquire(name: string, options: Partial<RedlockOptions> = {}) {
  return locks(options).tryAcquire(name, { ttlMs: TTL_MS });
}

export async function kill(...which: number[]): Promise<void> {
  for (const server of servers.filter((_, i) => which.includes(i))) {
    down.add(server);
    await server.kill();
  }
}

export async function revive(): Promise<void> {
  for (const server of down) await server.start(true);
  down.clear();
  for (const client of redis) {
    await expect.poll(() => client.ping().catch(() => 'down'), { timeout: 15_000 }).toBe('PONG');
  }
}

/** Runs a command for the lock's key on the servers that are up. */
export function onEach(command: string, name: string, ...args: string[]): Promise<unknown[]> {
  const up = redis.filter((_, i) => servers[i] !== undefined && !down.has(servers[i]));
  return Promise.all(up.map((client) => client.call(command, `redlock:{${name}}:lock`, ...args)));
}

/** On how many servers somebody has the lock. */
export async function taken(name: string): Promise<number> {
  return (await onEach('EXISTS', name)).filter((exists) => exists === 1).length;
}

/** What a step of their clocks would do on these servers. */
export async function expire(name: string, ...which: number[]): Promise<void> {
  for (const i of which) await redis[i]?.del(`redlock:{${name}}:lock`);
}

export async function setCounters(name: string, value: string): Promise<void> {
  // A minority is behind, as after an absence.
  for (const client of redis.slice(0, 3)) await client.set(`redlock:{${name}}:token`, value);
}

/** The connections, with something to be awaited before each call. */
export function through(before: (instance: number) => unknown): RedlockClient[] {
  return redis.map((client, i) => ({
    call: async (command, ...args) => {
      await before(i);
      return client.call(command, ...args);
    },
  }));
}

export async function startAll(): Promise<void> {
  await Promise.all(servers.map((server) => server.start(true)));
  redis = connect();
}

export async function stopAll(): Promise<void> {
  for (const client of opened) client.disconnect();
  await Promise.all(servers.map((server) => server.stop()));
}
