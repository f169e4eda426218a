import type { Contestant } from '../bench/contestant.ts';
import { openStore } from '../packages/pawl/src/cli/store-address.ts';
import type { Lease } from '../packages/pawl/src/client/lease.ts';
import { open } from '../packages/pawl/src/client/open.ts';

/** How a worker gets its lock: from Pawl on the store at an address, or from a peer. */
export type LockerSettings =
  | { readonly kind: 'pawl'; readonly address: string }
  | { readonly kind: 'peer'; readonly peer: string; readonly ports: readonly number[] };

export interface Grant {
  /** What the fence asks for; peers have nothing of the kind. */
  readonly lease?: Lease;
  release(): Promise<unknown>;
}

export interface Locker {
  acquire(lock: string): Promise<Grant>;
  close(): Promise<unknown>;
}

type PeerOf = (ports: readonly number[], ttlMs: number) => Promise<Contestant>;

/** A worker loads only the package that it needs: it may be started often. */
const PEERS: Readonly<Record<string, PeerOf>> = {
  redlock: async (ports, ttlMs) =>
    (await import('../bench/peers/redlock-package.ts')).redlockPackage('redlock', ports, ttlMs),
  'set-nx-px': async ([port = 0], ttlMs) =>
    (await import('../bench/peers/set-nx-px.ts')).setNxPx('set-nx-px', port, ttlMs),
  'redis-semaphore': async ([port = 0], ttlMs) =>
    (await import('../bench/peers/redis-semaphore-mutex.ts')).redisSemaphoreMutex(
      'redis-semaphore',
      port,
      ttlMs,
    ),
  etcd3: async ([port = 0], ttlMs) =>
    (await import('../bench/peers/etcd3-lock.ts')).etcd3Lock([`http://127.0.0.1:${port}`], ttlMs),
  'zookeeper-recipe': async ([port = 0], ttlMs) =>
    (await import('../bench/peers/zookeeper-recipe.ts')).zookeeperRecipe('zookeeper-recipe', port, ttlMs),
  'advisory-locks': async ([port = 0]) =>
    (await import('../bench/peers/advisory-locks.ts')).advisoryLocks('advisory-locks', port),
};

export async function openLocker(settings: LockerSettings, ttlMs: number): Promise<Locker> {
  if (settings.kind === 'peer') {
    const contestant = await PEERS[settings.peer]?.(settings.ports, ttlMs);
    if (contestant === undefined) throw new Error(`There is no peer ${settings.peer}.`);
    const client = await contestant.connect(1);
    return {
      acquire: async (lock) => ({ release: await client.acquire(lock) }),
      close: () => client.close(),
    };
  }
  const store = await openStore(settings.address);
  const pawl = open(store.engine);
  return {
    acquire: async (lock) => {
      const lease = await pawl.acquire(lock, { ttlMs });
      return { lease, release: () => lease.release() };
    },
    close: async () => {
      await pawl.close();
      await store.close();
    },
  };
}
