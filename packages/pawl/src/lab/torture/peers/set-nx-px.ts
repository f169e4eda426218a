import { randomUUID } from 'node:crypto';
import { type OpenPeer, untilGranted } from './peer.ts';
import { connectRedis } from './redis-connection.ts';

const COMPARE_AND_DELETE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

/** The usual way with one Redis: `SET NX PX`, and a script that deletes only one's own. */
export const setNxPx: OpenPeer = async ([port = 0], ttlMs) => {
  const client = await connectRedis(port);
  const sha = String(await client.script('LOAD', COMPARE_AND_DELETE));
  const release = async (lock: string, owner: string) => {
    try {
      return await client.evalsha(sha, 1, lock, owner);
    } catch (error) {
      // A server that was started anew does not know the script.
      if (!String(error).includes('NOSCRIPT')) throw error;
      return client.eval(COMPARE_AND_DELETE, 1, lock, owner);
    }
  };
  return {
    acquire: async (lock) => {
      const owner = randomUUID();
      await untilGranted(async () => (await client.set(lock, owner, 'PX', ttlMs, 'NX')) ?? undefined);
      return () => release(lock, owner);
    },
    close: async () => client.disconnect(),
  };
};
