import Redlock, { ExecutionError, type Lock } from 'redlock';
import { type Contestant, TTL_MS } from '../contestant.ts';
import { connectRedis } from '../redis-connection.ts';

/** npm `redlock` with the settings it has by default, on one Redis or on several. */
export function redlockPackage(name: string, ports: readonly number[], ttlMs = TTL_MS): Contestant {
  return {
    name,
    kind: 'peer',
    waits: 'retries every 200 ± 100 ms, its default',
    connect: async () => {
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
    },
  };
}
