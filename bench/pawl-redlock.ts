import { redlock } from '../packages/pawl/src/engines/redlock/index.ts';
import { type Contestant, TTL_MS } from './contestant.ts';
import { connectRedis } from './redis-connection.ts';

/** Far above the default: with 512 at once this one process keeps its own answers waiting. */
const INSTANCE_TIMEOUT_MS = 2000;

/** Pawl's own Redlock, which has no queue either. */
export function pawlRedlock(name: string, ports: readonly number[]): Contestant {
  return {
    name,
    kind: 'engine',
    waits: 'retries every 100 to 200 ms, its default',
    connect: async () => {
      const clients = await Promise.all(ports.map(connectRedis));
      const locks = redlock({ clients, instanceTimeoutMs: INSTANCE_TIMEOUT_MS });
      return {
        acquire: async (lock) => {
          const lease = await locks.acquire(lock, { ttlMs: TTL_MS });
          return () => lease.release();
        },
        close: async () => {
          for (const client of clients) client.disconnect();
        },
      };
    },
  };
}
