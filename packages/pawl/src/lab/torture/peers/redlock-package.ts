import { loadPackage } from '../packages.ts';
import type { OpenPeer } from './peer.ts';
import { connectRedis, type RedisConnection } from './redis-connection.ts';

interface Lock {
  release(): Promise<unknown>;
}

interface RedlockModule {
  readonly default: new (
    clients: readonly RedisConnection[],
  ) => {
    acquire(resources: string[], durationMs: number): Promise<Lock>;
  };
  readonly ExecutionError: new (...args: never[]) => Error;
}

/** npm `redlock` with the settings it has by default. */
export const redlockPackage: OpenPeer = async (ports, ttlMs) => {
  const { default: Redlock, ExecutionError } = await loadPackage<RedlockModule>('redlock');
  const clients = await Promise.all(ports.map(connectRedis));
  const redlock = new Redlock(clients);
  const acquire = async (lock: string): Promise<Lock> => {
    for (;;) {
      try {
        return await redlock.acquire([lock], ttlMs);
      } catch (error) {
        // It gives up after ten retries; here it goes on.
        if (!(error instanceof ExecutionError)) throw error;
      }
    }
  };
  return {
    acquire: async (lock) => {
      const held = await acquire(lock);
      return () => held.release();
    },
    close: async () => {
      for (const client of clients) client.disconnect();
    },
  };
};
