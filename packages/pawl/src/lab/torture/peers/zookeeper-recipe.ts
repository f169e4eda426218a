import { type EventEmitter, once } from 'node:events';
import { loadPackage } from '../packages.ts';
import type { OpenPeer } from './peer.ts';

type Done<T> = (error: Error | object | null, result?: T) => void;

interface Client extends EventEmitter {
  connect(): void;
  close(): void;
  mkdirp(path: string, done: Done<string>): void;
  create(path: string, mode: number, done: Done<string>): void;
  remove(path: string, done: Done<void>): void;
  getChildren(path: string, done: Done<string[]>): void;
  exists(path: string, watch: () => void, done: Done<object>): void;
}

interface ZooKeeperModule {
  readonly default: {
    createClient(connect: string, options: { readonly sessionTimeout: number }): Client;
    readonly CreateMode: { readonly EPHEMERAL_SEQUENTIAL: number };
  };
}

/** The lock recipe of ZooKeeper's own pages by npm `node-zookeeper-client`: each waiter watches the one before it. */
export const zookeeperRecipe: OpenPeer = async ([port = 0], ttlMs) => {
  const { createClient, CreateMode } = (await loadPackage<ZooKeeperModule>('node-zookeeper-client')).default;
  const client = createClient(`127.0.0.1:${port}`, { sessionTimeout: ttlMs });
  const connected = once(client, 'connected');
  client.connect();
  await connected;
  const folders = new Map<string, Promise<unknown>>();
  const folder = (path: string) => {
    const made = folders.get(path) ?? called<string>((done) => client.mkdirp(path, done));
    folders.set(path, made);
    return made;
  };
  return {
    acquire: async (lock) => {
      const path = `/recipe/${lock}`;
      await folder(path);
      const own = await called<string>((done) =>
        client.create(`${path}/lock-`, CreateMode.EPHEMERAL_SEQUENTIAL, done),
      );
      await untilFirst(client, path, own.slice(path.length + 1));
      return () => called((done) => client.remove(own, done));
    },
    close: async () => {
      const disconnected = once(client, 'disconnected');
      client.close();
      await disconnected;
    },
  };
};

async function untilFirst(client: Client, path: string, own: string): Promise<void> {
  for (;;) {
    const children = await called<string[]>((done) => client.getChildren(path, done));
    const before = children.filter((child) => child < own).sort();
    const predecessor = before.at(-1);
    if (predecessor === undefined) return;
    const gone = Promise.withResolvers<void>();
    // Whoever asks for the predecessor is told of the end of the session as well.
    gone.promise.catch(() => {});
    const expired = () => gone.reject(new Error('The session of a waiter has expired.'));
    client.once('expired', expired);
    try {
      const stat = await called<object>((done) =>
        client.exists(`${path}/${predecessor}`, () => gone.resolve(), done),
      );
      if (stat) await gone.promise;
    } finally {
      client.off('expired', expired);
    }
  }
}

function called<T>(call: (done: Done<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, result) => {
      if (error) reject(error instanceof Error ? error : new Error(String(error)));
      else resolve(result as T);
    });
  });
}
