import { loadPackage } from '../packages.ts';
import type { OpenPeer } from './peer.ts';
import { connectRedis, type RedisConnection } from './redis-connection.ts';

interface RedisSemaphore {
  readonly Mutex: new (
    client: RedisConnection,
    lock: string,
    options: { lockTimeout: number; acquireTimeout: number },
  ) => { acquire(): Promise<void>; release(): Promise<void> };
}

/** The mutex of npm `redis-semaphore`; it renews its locks. */
export const redisSemaphoreMutex: OpenPeer = async ([port = 0], ttlMs) => {
  const { Mutex } = await loadPackage<RedisSemaphore>('redis-semaphore');
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
};
