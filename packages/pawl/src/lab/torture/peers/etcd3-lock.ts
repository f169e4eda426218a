import { loadPackage } from '../packages.ts';
import { type OpenPeer, untilGranted } from './peer.ts';

interface Lock {
  ttl(seconds: number): Lock;
  acquire(): Promise<Lock>;
  release(): Promise<void>;
}

interface Etcd3Module {
  readonly Etcd3: new (options: { readonly hosts: string[] }) => { lock(name: string): Lock; close(): void };
  readonly EtcdLockFailedError: new (...args: never[]) => Error;
}

/** The lock of npm `etcd3`: a lease and a key for each acquire. It rejects where the lock is held. */
export const etcd3Lock: OpenPeer = async ([port = 0], ttlMs) => {
  const { Etcd3, EtcdLockFailedError } = await loadPackage<Etcd3Module>('etcd3');
  const client = new Etcd3({ hosts: [`http://127.0.0.1:${port}`] });
  const attempt = async (name: string) => {
    try {
      return await client
        .lock(name)
        .ttl(ttlMs / 1000)
        .acquire();
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
};
