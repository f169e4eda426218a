import { loadPackage } from '../packages.ts';

/** What is called on a connection of `ioredis`. */
export interface RedisConnection {
  connect(): Promise<void>;
  disconnect(): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
  set(key: string, value: string, unit: 'PX', ms: number, condition: 'NX'): Promise<string | null>;
  eval(script: string, keys: number, ...args: readonly string[]): Promise<unknown>;
  evalsha(sha: string, keys: number, ...args: readonly string[]): Promise<unknown>;
  script(action: 'LOAD', script: string): Promise<unknown>;
}

interface IoRedis {
  readonly Redis: new (options: { port: number; host: string; lazyConnect: boolean }) => RedisConnection;
}

/** Connects with the settings of `ioredis` as they come. */
export async function connectRedis(port: number): Promise<RedisConnection> {
  const { Redis } = await loadPackage<IoRedis>('ioredis');
  const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true });
  // A server that is away is no error of the worker's: whoever calls is told.
  client.on('error', () => {});
  await client.connect();
  return client;
}
