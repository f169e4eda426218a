import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { etcdEngine } from '../packages/pawl/src/engines/etcd/index.ts';
import { memoryEngine } from '../packages/pawl/src/engines/memory/index.ts';
import { postgresEngine } from '../packages/pawl/src/engines/postgres/index.ts';
import { redisEngine } from '../packages/pawl/src/engines/redis/index.ts';
import { sqliteEngine } from '../packages/pawl/src/engines/sqlite/index.ts';
import { zookeeperEngine } from '../packages/pawl/src/engines/zookeeper/index.ts';
import { etcd3Lock } from '../packages/pawl/src/lab/torture/peers/etcd3-lock.ts';
import { RETRY_MS } from '../packages/pawl/src/lab/torture/peers/peer.ts';
import { redisSemaphoreMutex } from '../packages/pawl/src/lab/torture/peers/redis-semaphore-mutex.ts';
import { redlockPackage } from '../packages/pawl/src/lab/torture/peers/redlock-package.ts';
import { setNxPx } from '../packages/pawl/src/lab/torture/peers/set-nx-px.ts';
import { zookeeperRecipe } from '../packages/pawl/src/lab/torture/peers/zookeeper-recipe.ts';
import { EtcdServer, haveEtcd } from '../packages/pawl/test/engines/etcd-server.ts';
import { PostgresServer, postgresPrograms } from '../packages/pawl/test/engines/postgres-server.ts';
import { haveRedis, RedisServer } from '../packages/pawl/test/engines/redis-server.ts';
import { haveZooKeeper, ZooKeeperServer } from '../packages/pawl/test/engines/zookeeper-server.ts';
import { advisoryLocks } from './advisory-locks.ts';
import { bareEtcd } from './bare-etcd.ts';
import type { Contestant, Stage } from './contestant.ts';
import { onEngine } from './pawl-client.ts';
import { pawlRedlock } from './pawl-redlock.ts';
import { peer } from './peer.ts';
import { connectPostgres } from './postgres-pool.ts';
import { connectRedis } from './redis-connection.ts';

const REDLOCK_INSTANCES = 5;
const REDLOCK_RETRIES = 'retries every 200 ± 100 ms, its default';
const ASKED_AGAIN = `cannot; the bench retries every ${RETRY_MS} ms`;
/** So many connections to Postgres at most for all pools of the engine's together. */
const ENGINE_CONNECTIONS = 80;

const inProcess: Stage = {
  server: 'none',
  names: ['memory', 'sqlite'],
  available: () => true,
  start: async (onStop) => {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-'));
    onStop(async () => rmSync(folder, { recursive: true, force: true }));
    return [
      memory(),
      onEngine('sqlite', async () => ({ engine: await sqliteEngine({ path: join(folder, 'pawl.db') }) })),
    ];
  },
};

function memory(): Contestant {
  // Its clients share it, so it stays open.
  const engine = memoryEngine();
  return onEngine('memory', async () => ({ engine, close: () => {} }));
}

const postgres: Stage = {
  server: 'postgres',
  names: ['postgres', 'advisory-locks'],
  available: () => postgresPrograms() !== undefined,
  start: async (onStop) => {
    const server = new PostgresServer(postgresPrograms() ?? '');
    onStop(() => server.stop());
    await server.start();
    const engine = onEngine('postgres', async (clients) => {
      const pool = connectPostgres(server.port, Math.min(10, Math.floor(ENGINE_CONNECTIONS / clients)));
      const engine = await postgresEngine({ pool });
      return { engine, close: () => engine.close().then(() => pool.end()) };
    });
    return [engine, advisoryLocks('advisory-locks', server.port)];
  },
};

function redisRow(name: string, port: number): Contestant {
  return onEngine(name, async () => {
    const client = await connectRedis(port);
    const engine = redisEngine({ client });
    return { engine, close: () => engine.close().then(() => client.disconnect()) };
  });
}

const redis: Stage = {
  server: 'redis',
  names: ['redis', 'set-nx-px', 'redis-semaphore', 'redlock-1'],
  available: haveRedis,
  start: async (onStop) => {
    const server = new RedisServer();
    onStop(() => server.stop());
    await server.start();
    const { port } = server;
    return [
      redisRow('redis', port),
      peer('set-nx-px', ASKED_AGAIN, [port], setNxPx),
      peer('redis-semaphore', 'retries every 10 ms, its default', [port], redisSemaphoreMutex),
      peer('redlock-1', REDLOCK_RETRIES, [port], redlockPackage),
    ];
  },
};

const redisFlushed: Stage = {
  server: 'redis, appendfsync always',
  names: ['redis-flushed', 'set-nx-px-flushed'],
  available: haveRedis,
  start: async (onStop) => {
    const server = new RedisServer();
    onStop(() => server.stop());
    await server.start(true);
    return [
      redisRow('redis-flushed', server.port),
      peer('set-nx-px-flushed', ASKED_AGAIN, [server.port], setNxPx),
    ];
  },
};

const fiveRedis: Stage = {
  server: 'five redis',
  names: ['pawl-redlock-5', 'redlock-5'],
  available: haveRedis,
  start: async (onStop) => {
    const servers = Array.from({ length: REDLOCK_INSTANCES }, () => new RedisServer());
    onStop(async () => {
      await Promise.all(servers.map((server) => server.stop()));
    });
    for (const server of servers) await server.start();
    const ports = servers.map(({ port }) => port);
    return [pawlRedlock('pawl-redlock-5', ports), peer('redlock-5', REDLOCK_RETRIES, ports, redlockPackage)];
  },
};

const etcd: Stage = {
  server: 'etcd',
  names: ['etcd', 'etcd-bare', 'etcd-bare-lock', 'etcd3'],
  available: haveEtcd,
  start: async (onStop) => {
    const server = new EtcdServer();
    onStop(() => server.stop());
    await server.start();
    const { endpoints } = server;
    return [
      onEngine('etcd', async () => ({ engine: await etcdEngine({ endpoints }) })),
      bareEtcd('etcd-bare', endpoints, 2),
      bareEtcd('etcd-bare-lock', endpoints, 1),
      peer('etcd3', `rejects; the bench retries every ${RETRY_MS} ms`, [server.port(0)], etcd3Lock),
    ];
  },
};

const zookeeper: Stage = {
  server: 'zookeeper',
  names: ['zookeeper', 'zookeeper-recipe'],
  available: haveZooKeeper,
  start: async (onStop) => {
    const server = new ZooKeeperServer();
    onStop(() => server.stop());
    await server.start();
    const connect = `127.0.0.1:${server.port}`;
    return [
      onEngine('zookeeper', async () => ({ engine: zookeeperEngine({ connect }) })),
      peer('zookeeper-recipe', 'queue, by a watch', [server.port], zookeeperRecipe),
    ];
  },
};

/** One after the other: no server runs beside another's measuring. */
export const stages: readonly Stage[] = [
  inProcess,
  postgres,
  redis,
  redisFlushed,
  fiveRedis,
  etcd,
  zookeeper,
];
