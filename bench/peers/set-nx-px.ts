import { randomUUID } from 'node:crypto';
import { type Contestant, RETRY_MS, TTL_MS, untilGranted } from '../contestant.ts';
import { connectRedis } from '../redis-connection.ts';

const COMPARE_AND_DELETE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

/** The usual way with Redis: `SET NX PX`, and a script that deletes only one's own. */
export function setNxPx(name: string, port: number, ttlMs = TTL_MS): Contestant {
  return {
    name,
    kind: 'peer',
    waits: `cannot; the bench retries every ${RETRY_MS} ms`,
    connect: async () => {
      const client = await connectRedis(port);
      const sha = String(await client.script('LOAD', COMPARE_AND_DELETE));
      return {
        acquire: async (lock) => {
          const owner = randomUUID();
          await untilGranted(async () => (await client.set(lock, owner, 'PX', ttlMs, 'NX')) ?? undefined);
          return async () => {
            try {
              return await client.evalsha(sha, 1, lock, owner);
            } catch (error) {
              // A server that was started anew does not know the script.
              if (!String(error).includes('NOSCRIPT')) throw error;
              return client.eval(COMPARE_AND_DELETE, 1, lock, owner);
            }
          };
        },
        close: async () => client.disconnect(),
      };
    },
  };
}
