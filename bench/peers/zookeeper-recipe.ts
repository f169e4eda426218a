import { once } from 'node:events';
import zookeeper, { type Client } from 'node-zookeeper-client';
import { type Contestant, TTL_MS } from '../contestant.ts';

/** The lock recipe of ZooKeeper's own pages with npm `node-zookeeper-client`: each waiter watches the one before it. */
export function zookeeperRecipe(name: string, port: number, ttlMs = TTL_MS): Contestant {
  return {
    name,
    kind: 'peer',
    waits: 'queue, by a watch',
    connect: async () => {
      const client = zookeeper.createClient(`127.0.0.1:${port}`, { sessionTimeout: ttlMs });
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
            client.create(`${path}/lock-`, zookeeper.CreateMode.EPHEMERAL_SEQUENTIAL, done),
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
    },
  };
}

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
      const stat = await called((done) =>
        client.exists(`${path}/${predecessor}`, () => gone.resolve(), done),
      );
      if (stat) await gone.promise;
    } finally {
      client.off('expired', expired);
    }
  }
}

function called<T>(call: (done: (error: Error | object | null, result?: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, result) => {
      if (error) reject(error instanceof Error ? error : new Error(String(error)));
      else resolve(result as T);
    });
  });
}
