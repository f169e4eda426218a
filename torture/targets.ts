import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdServer, haveEtcd } from '../packages/pawl/test/engines/etcd-server.ts';
import { PostgresServer, postgresPrograms } from '../packages/pawl/test/engines/postgres-server.ts';
import { haveRedis, RedisServer } from '../packages/pawl/test/engines/redis-server.ts';
import { haveZooKeeper, ZooKeeperServer } from '../packages/pawl/test/engines/zookeeper-server.ts';
import type { LockerSettings } from './locker.ts';

/** Within the bounds of every server, etcd's included, in ms. */
export const TTL_MS = 2000;
const REDLOCK_INSTANCES = 5;
/** A server that was killed stays away for so long, in ms. */
const AWAY_MS = 300;

export interface Target {
  readonly name: string;
  readonly kind: 'pawl' | 'peer';
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
  readonly name: string;
  readonly targets: readonly Target[];
  /** Whether the servers can be had on this machine. */
  available(): boolean;
  /** @param onStop is told what stops the servers, before they start. */
  start(onStop: OnStop): Promise<Servers>;
}

function pawl(name: string, address: (port: number, folder: string) => string): Target {
  return {
    name,
    kind: 'pawl',
    locker: ([port = 0], folder) => ({ kind: 'pawl', address: address(port, folder) }),
  };
}

function peer(name: string): Target {
  return { name, kind: 'peer', locker: (ports) => ({ kind: 'peer', peer: name, ports }) };
}

/** A server that can be killed and goes on with what it had stored. */
interface DurableServer {
  start(): Promise<void>;
  kill(): Promise<void>;
  stop(): Promise<void>;
}

/** @returns what kills it and starts it again, unless it is to be stopped meanwhile. */
async function startDurable(server: DurableServer, onStop: OnStop): Promise<() => Promise<void>> {
  let over = false;
  onStop(() => {
    over = true;
    return server.stop();
  });
  await server.start();
  return async () => {
    await server.kill();
    await sleep(AWAY_MS);
    if (!over) await server.start();
  };
}

const sqlite: Group = {
  name: 'sqlite',
  targets: [pawl('sqlite', (_port, folder) => join(folder, 'locks.db'))],
  available: () => true,
  start: async () => ({ ports: [] }),
};

const postgres: Group = {
  name: 'postgres',
  targets: [
    pawl('postgres', (port) => `postgres://postgres@127.0.0.1:${port}/postgres`),
    peer('advisory-locks'),
  ],
  available: () => postgresPrograms() !== undefined,
  start: async (onStop) => {
    const server = new PostgresServer(postgresPrograms() ?? '');
    const restart = await startDurable(server, onStop);
    return { ports: [server.port], restart };
  },
};

/** Each flushes every write to its disk. They are restarted in turn. */
async function startRedis(onStop: OnStop, size: number): Promise<Servers> {
  const ports: number[] = [];
  const restarts: (() => Promise<void>)[] = [];
  for (let i = 0; i < size; i += 1) {
    const server = new RedisServer();
    const durable = {
      start: () => server.start(true),
      kill: () => server.kill(),
      stop: () => server.stop(),
    };
    restarts.push(await startDurable(durable, onStop));
    ports.push(server.port);
  }
  let turn = 0;
  return { ports, restart: async () => restarts[turn++ % size]?.() };
}

const redis: Group = {
  name: 'redis',
  targets: [pawl('redis', (port) => `redis://127.0.0.1:${port}`), peer('set-nx-px'), peer('redis-semaphore')],
  available: haveRedis,
  start: (onStop) => startRedis(onStop, 1),
};

const fiveRedis: Group = {
  name: 'five redis',
  targets: [peer('redlock')],
  available: haveRedis,
  start: (onStop) => startRedis(onStop, REDLOCK_INSTANCES),
};

const etcd: Group = {
  name: 'etcd',
  targets: [pawl('etcd', (port) => `etcd://127.0.0.1:${port}`), peer('etcd3')],
  available: haveEtcd,
  start: async (onStop) => {
    const server = new EtcdServer();
    let known = false;
    const durable = {
      start: async () => {
        await (known ? server.startMember(0) : server.start());
        known = true;
      },
      kill: () => server.kill(0),
      stop: () => server.stop(),
    };
    const restart = await startDurable(durable, onStop);
    return { ports: [server.port(0)], restart };
  },
};

const zookeeper: Group = {
  name: 'zookeeper',
  targets: [
    pawl('zookeeper', (port) => `zookeeper://127.0.0.1:${port}/torture?minTtlMs=500`),
    peer('zookeeper-recipe'),
  ],
  available: haveZooKeeper,
  start: async (onStop) => {
    const server = new ZooKeeperServer();
    const restart = await startDurable(server, onStop);
    return { ports: [server.port], restart };
  },
};

export const groups: readonly Group[] = [sqlite, postgres, redis, fiveRedis, etcd, zookeeper];
