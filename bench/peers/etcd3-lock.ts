import { Etcd3, EtcdLockFailedError } from 'etcd3';
import { type Contestant, RETRY_MS, TTL_MS, untilGranted } from '../contestant.ts';

/** The lock of npm `etcd3`: a lease and a key for each acquire. It rejects where the lock is held. */
export function etcd3Lock(hosts: string[], ttlMs = TTL_MS): Contestant {
  return {
    name: 'etcd3',
    kind: 'peer',
    waits: `rejects; the bench retries every ${RETRY_MS} ms`,
    connect: async () => {
      const client = new Etcd3({ hosts });
      const attempt = async (name: string) => {
        const lock = client.lock(name).ttl(ttlMs / 1000);
        try {
          return await lock.acquire();
        } catch (error) {
          if (error instanceof EtcdLockFailedError) return undefined;
          throw error;
        }
      };
      return {
        acquire: async (name) => {
          const lock = await untilGranted(() => attempt(name));
          return () => lock.release();
        },
        close: async () => client.close(),
      };
    },
  };
}
