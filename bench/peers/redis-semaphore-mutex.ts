import { Mutex } from 'redis-semaphore';
import { type Contestant, TTL_MS } from '../contestant.ts';
import { connectRedis } from '../redis-connection.ts';

/** The mutex of npm `redis-semaphore`; it renews its locks. */
export function redisSemaphoreMutex(name: string, port: number, ttlMs = TTL_MS): Contestant {
  return {
    name,
    kind: 'peer',
    waits: 'retries every 10 ms, its default',
    connect: async () => {
      const client = await connectRedis(port);
      const options = { lockTimeout: ttlMs, acquireTimeout: Number.POSITIVE_INFINITY };
      return {
        acquire: async (lock) => {
          const mutex = new Mutex(client, lock, options);
          await mutex.acquire();
          return () => mutex.release();
        },
        close: async () => client.disconnect(),
      };
    },
  };
}
