import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockerSettings } from './locker.ts';
import type { DurableServer } from './servers/durable-server.ts';
import { EtcdServer, lackForEtcd } from './servers/etcd.ts';
import { lackForPostgres, PostgresServer } from './servers/postgres.ts';
import { lackForRedis, RedisServer } from './servers/redis.ts';
import { lackForZooKeeper, ZooKeeperServer } from './servers/zookeeper.ts';

const REDLOCK_INSTANCES = 5;
/** A server that was killed stays away for so long, in ms. */
const AWAY_MS = 300;

export interface Target {
  readonly name: string;
  readonly kind: 'pawl' | 'peer';
  /** The npm packages that it cannot do without. */
  readonly packages: readonly string[];
  /** @param ports where the worker reaches the servers; @param folder where the run's files are. */
  locker(ports: readonly number[], folder: string): LockerSettings;
}

/** Servers that are running. */
export interface Servers {
  readonly ports: readonly number[];
  /** Kills one and starts it again; it is durable. */
  readonly restart?: () => Promise<void>;
}

type OnStop = (stop: () => Promise<void>) => void;

/** Targets that share their servers, so that they are tortured side by side and suffer the same. */
export interface Group {
  readonly targets: readonly Target[];
  /** What this machine lacks for the servers; `undefined` if nothing. */
  lack(): string | undefined;
  /** @param onStop is told what stops the servers, before they start. */
  start(onStop: OnStop): Promise<Servers>;
}

function pawl(
  name: string,
  packages: readonly string[],
  address: (port: number, folder: string) => string,
): Target {
  return {
    name,
    kind: 'pawl',
    packages,
    locker: ([port = 0], folder) => ({ kind: 'pawl', address: address(port, folder) }),
  };
}

function peer(name: string, ...packages: readonly string[]): Target {
  return { name, kind: 'peer', packages, locker: (ports) => ({ kind: 'peer', peer: name, ports }) };
}

/** Starts the servers; one is restarted at a time, in turn, unless all are to be stopped meanwhile. */
async function startAll(servers: readonly DurableServer[], onStop: OnStop): Promise<Servers> {
  let over = false;
  onStop(async () => {
    over = true;
    for (const server of servers) await server.stop();
  });
  for (const server of servers) await server.start();
  let turn = 0;
  return {
    ports: servers.map(({ port }) => port),
    restart: async () => {
      const server = servers[turn++ % servers.length];
      await server?.kill();
      await sleep(AWAY_MS);
      if (!over) await server?.start();
    },
  };
}

/** All that can be tortured. */
export const groups: readonly Group[] = [
  {
    targets: [pawl('sqlite', [], (_port, folder) => join(folder, 'locks.db'))],
    lack: () => undefined,
    start: async () => ({ ports: [] }),
  },
  {
    targets: [
      pawl('postgres', ['pg'], (port) => `postgres://postgres@127.0.0.1:${port}/postgres`),
      peer('advisory-locks', 'pg'),
    ],
    lack: lackForPostgres,
    start: (onStop) => startAll([new PostgresServer()], onStop),
  },
  {
    targets: [
      pawl('redis', ['ioredis'], (port) => `redis://127.0.0.1:${port}`),
      peer('set-nx-px', 'ioredis'),
      peer('redis-semaphore', 'redis-semaphore', 'ioredis'),
      peer('verrou', '@verrou/core', 'ioredis'),
    ],
    lack: lackForRedis,
    start: (onStop) => startAll([new RedisServer()], onStop),
  },
  {
    targets: [peer('redlock', 'redlock', 'ioredis')],
    lack: lackForRedis,
    start: (onStop) =>
      startAll(
        Array.from({ length: REDLOCK_INSTANCES }, () => new RedisServer()),
        onStop,
      ),
  },
  {
    targets: [pawl('etcd', ['@grpc/grpc-js'], (port) => `etcd://127.0.0.1:${port}`), peer('etcd3', 'etcd3')],
    lack: lackForEtcd,
    start: (onStop) => startAll([new EtcdServer()], onStop),
  },
  {
    targets: [
      pawl('zookeeper', [], (port) => `zookeeper://127.0.0.1:${port}/torture?minTtlMs=500`),
      peer('zookeeper-recipe', 'node-zookeeper-client'),
    ],
    lack: lackForZooKeeper,
    start: (onStop) => startAll([new ZooKeeperServer()], onStop),
  },
];

/** The names of all targets, in the order in which they are shown. */
export const TARGET_NAMES: readonly string[] = groups.flatMap(({ targets }) =>
  targets.map(({ name }) => name),
);
