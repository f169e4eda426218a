import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { etcdEngine } from '../packages/pawl/src/engines/etcd/index.ts';
import { memoryEngine } from '../packages/pawl/src/engines/memory/index.ts';
import { postgresEngine } from '../packages/pawl/src/engines/postgres/index.ts';
import { redisEngine } from '../packages/pawl/src/engines/redis/index.ts';
import { sqliteEngine } from '../packages/pawl/src/engines/sqlite/index.ts';
import { zookeeperEngine } from '../packages/pawl/src/engines/zookeeper/index.ts';
import { EtcdServer, haveEtcd } from '../packages/pawl/test/engines/etcd-server.ts';
import { PostgresServer, postgresPrograms } from '../packages/pawl/test/engines/postgres-server.ts';
import { haveRedis, RedisServer } from '../packages/pawl/test/engines/redis-server.ts';
import { haveZooKeeper, ZooKeeperServer } from '../packages/pawl/test/engines/zookeeper-server.ts';
import type { Contestant, Stage } from './contestant.ts';
import { onEngine } from './pawl-client.ts';
import { pawlRedlock } from './pawl-redlock.ts';
import { advisoryLocks } from './peers/advisory-locks.ts';
import { etcd3Lock } from './peers/etcd3-lock.ts';
import { redisSemaphoreMutex } from './peers/redis-semaphore-mutex.ts';
import { redlockPackage } from './peers/redlock-package.ts';
import { setNxPx } from './peers/set-nx-px.ts';
import { zookeeperRecipe } from './peers/zookeeper-recipe.ts';
import { connectPostgres } from './postgres-pool.ts';
import { connectRedis } from './redis-connection.ts';

const REDLOCK_INSTANCES = 5;
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
      setNxPx('set-nx-px', port),
      redisSemaphoreMutex('redis-semaphore', port),
      redlockPackage('redlock-1', [port]),
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
    return [redisRow('redis-flushed', server.port), setNxPx('set-nx-px-flushed', server.port)];
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
    return [pawlRedlock('pawl-redlock-5', ports), redlockPackage('redlock-5', ports)];
  },
};

const etcd: Stage = {
  server: 'etcd',
  names: ['etcd', 'etcd3'],
  available: haveEtcd,
  start: async (onStop) => {
    const server = new EtcdServer();
    onStop(() => server.stop());
    await server.start();
    const { endpoints } = server;
    return [
      onEngine('etcd', async () => ({ engine: await etcdEngine({ endpoints }) })),
      etcd3Lock(endpoints),
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
      zookeeperRecipe('zookeeper-recipe', server.port),
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
