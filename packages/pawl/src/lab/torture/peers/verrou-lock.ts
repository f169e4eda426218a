import { loadPackage } from '../packages.ts';
import type { OpenPeer } from './peer.ts';
import { connectRedis, type RedisConnection } from './redis-connection.ts';

type Driver = { readonly factory: () => unknown };

interface VerrouModule {
  readonly Verrou: new (config: {
    readonly default: string;
    readonly stores: Readonly<Record<string, { readonly driver: Driver }>>;
  }) => {
    createLock(
      name: string,
      ttlMs: number,
    ): {
      acquire(): Promise<boolean>;
      release(): Promise<void>;
    };
  };
}

interface RedisDriverModule {
  redisStore(options: { readonly connection: RedisConnection }): Driver;
}

/** The lock of npm `@verrou/core` on its Redis store. It asks again every 250 ms for ever, as it does by default, and does not renew. */
export const verrouLock: OpenPeer = async ([port = 0], ttlMs) => {
  const { Verrou } = await loadPackage<VerrouModule>('@verrou/core');
  const { redisStore } = await loadPackage<RedisDriverModule>('@verrou/core/drivers/redis');
  const client = await connectRedis(port);
  const stores = { redis: { driver: redisStore({ connection: client }) } };
  const verrou = new Verrou({ default: 'redis', stores });
  return {
    acquire: async (name) => {
      const lock = verrou.createLock(name, ttlMs);
      if (!(await lock.acquire())) throw new Error('The lock was not acquired, and nobody had set a limit.');
      return () => lock.release();
    },
    close: async () => client.disconnect(),
  };
};
