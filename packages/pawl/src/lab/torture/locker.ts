import type { Lease } from '../../client/lease.ts';
import type { Engine } from '../../engines/engine.ts';
import type { OpenPeer } from './peers/peer.ts';

/** How a worker gets its lock: from Pawl on the store at an address, or from a peer. */
export type LockerSettings =
  | { readonly kind: 'pawl'; readonly address: string }
  | { readonly kind: 'peer'; readonly peer: string; readonly ports: readonly number[] };

/** Opens a store by its address, as the command line does. */
export type OpenStore = (address: string) => Promise<{ readonly engine: Engine; close(): Promise<void> }>;

export interface Grant {
  /** What the fence asks for; peers have nothing of the kind. */
  readonly lease?: Lease;
  release(): Promise<unknown>;
}

export interface Locker {
  acquire(lock: string): Promise<Grant>;
  close(): Promise<unknown>;
}

/** A worker loads only the package that it needs: it may be started often. */
const PEERS: Readonly<Record<string, () => Promise<OpenPeer>>> = {
  redlock: async () => (await import('./peers/redlock-package.ts')).redlockPackage,
  'set-nx-px': async () => (await import('./peers/set-nx-px.ts')).setNxPx,
  'redis-semaphore': async () => (await import('./peers/redis-semaphore-mutex.ts')).redisSemaphoreMutex,
  verrou: async () => (await import('./peers/verrou-lock.ts')).verrouLock,
  etcd3: async () => (await import('./peers/etcd3-lock.ts')).etcd3Lock,
  'zookeeper-recipe': async () => (await import('./peers/zookeeper-recipe.ts')).zookeeperRecipe,
  'advisory-locks': async () => (await import('./peers/advisory-locks.ts')).advisoryLocks,
};

export async function openLocker(
  settings: LockerSettings,
  ttlMs: number,
  openStore: OpenStore,
): Promise<Locker> {
  if (settings.kind === 'peer') {
    const openPeer = await PEERS[settings.peer]?.();
    if (openPeer === undefined) throw new Error(`There is no peer ${settings.peer}.`);
    const client = await openPeer(settings.ports, ttlMs);
    return {
      acquire: async (lock) => ({ release: await client.acquire(lock) }),
      close: () => client.close(),
    };
  }
  const store = await openStore(settings.address);
  const { open } = await import('../../client/open.ts');
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
