/**
 * What a lock costs on each engine: acquire and release in a cycle, each client on a lock of its own, with 1, 64 and 512 at once; and the
 * hand-over from a release to the next waiter's grant, with 16 contenders. Beside them, in the same run, the usual way with Redis:
 * `SET NX PX` and a script that deletes. Run nothing beside it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Pool } from 'pg';
import { open } from '../packages/pawl/src/client/open.ts';
import type { Engine } from '../packages/pawl/src/engines/engine.ts';
import { memoryEngine } from '../packages/pawl/src/engines/memory/index.ts';
import { postgresEngine } from '../packages/pawl/src/engines/postgres/index.ts';
import { redisEngine } from '../packages/pawl/src/engines/redis/index.ts';
import { sqliteEngine } from '../packages/pawl/src/engines/sqlite/index.ts';
import { PostgresServer, postgresPrograms } from '../packages/pawl/test/engines/postgres-server.ts';
import { haveRedis, RedisServer } from '../packages/pawl/test/engines/redis-server.ts';

const FOR_MS = 2000;
const HANDOVERS = 300;
const CONTENDERS = 16;

interface Locker {
  readonly name: string;
  cycle(lock: string): Promise<void>;
  /** Times from a release to the next grant, in ms; `undefined` where there is no queue. */
  handOver?(): Promise<number[]>;
}

function onEngine(name: string, engine: Engine): Locker {
  const pawl = open(engine);
  return {
    name,
    cycle: async (lock) => {
      const lease = await pawl.acquire(lock);
      await lease.release();
    },
    handOver: async () => {
      const times: number[] = [];
      let releasedAt = 0;
      const contend = async () => {
        while (times.length < HANDOVERS) {
          const lease = await pawl.acquire('contended');
          if (releasedAt > 0) times.push(performance.now() - releasedAt);
          releasedAt = performance.now();
          await lease.release();
        }
      };
      await Promise.all(Array.from({ length: CONTENDERS }, contend));
      return times;
    },
  };
}

function plainRedis(name: string, client: Redis): Locker {
  const remove = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;
  let id = 0;
  return {
    name,
    cycle: async (lock) => {
      id += 1;
      const owner = `${id}`;
      await client.set(lock, owner, 'PX', 10_000, 'NX');
      await client.eval(remove, 1, lock, owner);
    },
  };
}

async function cyclesPerSecond({ cycle }: Locker, atOnce: number): Promise<number> {
  let cycles = 0;
  const startedAt = performance.now();
  const work = async (i: number) => {
    while (performance.now() - startedAt < FOR_MS) {
      await cycle(`lock-${atOnce}-${i}`);
      cycles += 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, (_, i) => work(i)));
  return (cycles * 1000) / (performance.now() - startedAt);
}

const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-'));
const lockers: Locker[] = [
  onEngine('memory', memoryEngine()),
  onEngine('sqlite, flushed', await sqliteEngine({ path: join(folder, 'pawl.db') })),
];
const stops: (() => Promise<void>)[] = [];
const bin = postgresPrograms();
if (bin !== undefined) {
  const server = new PostgresServer(bin);
  await server.start();
  stops.push(() => server.stop());
  const pool = new Pool({ host: '127.0.0.1', port: server.port, user: 'postgres', database: 'postgres' });
  pool.on('error', () => {});
  lockers.push(onEngine('postgres, flushed', await postgresEngine({ pool })));
}
if (haveRedis()) {
  for (const persistent of [false, true]) {
    const server = new RedisServer();
    await server.start(persistent);
    stops.push(() => server.stop());
    const client = new Redis({ port: server.port, host: '127.0.0.1' });
    client.on('error', () => {});
    const kind = persistent ? 'flushed' : 'nothing kept';
    lockers.push(
      onEngine(`redis, ${kind}`, redisEngine({ client })),
      plainRedis(`SET NX PX, ${kind}`, client),
    );
  }
}

console.log(
  `${'cycles/s with so many at once'.padEnd(30)}${[1, 64, 512].map((n) => String(n).padStart(9)).join('')}   hand-over p50, p99`,
);
for (const locker of lockers) {
  const rates: string[] = [];
  for (const atOnce of [1, 64, 512]) {
    const rate = await cyclesPerSecond(locker, atOnce);
    rates.push(rate.toFixed(0).padStart(9));
  }
  const times = ((await locker.handOver?.()) ?? []).sort((a, b) => a - b);
  const quantile = (share: number) => times[Math.floor(times.length * share)]?.toFixed(2) ?? '-';
  console.log(`${locker.name.padEnd(30)}${rates.join('')}   ${quantile(0.5)} ms, ${quantile(0.99)} ms`);
}
for (const stop of stops) await stop();
rmSync(folder, { recursive: true, force: true });
process.exit(0);
