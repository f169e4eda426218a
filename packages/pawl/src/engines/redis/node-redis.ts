import type { RedisConnection, RedisSubscriber } from './client.ts';

/** What the engine calls on a client of node-redis (the package `redis`), made by `createClient` and connected. */
export interface NodeRedisClient {
  sendCommand(args: string[]): Promise<unknown>;
  duplicate(): NodeRedisSubscriber;
}

export interface NodeRedisSubscriber {
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  destroy(): void;
}

export function isNodeRedis(client: RedisConnection | NodeRedisClient): client is NodeRedisClient {
  return typeof client === 'object' && client !== null && 'sendCommand' in client && !('call' in client);
}

/** The same connection as the engine knows it. */
export function fromNodeRedis(client: NodeRedisClient): RedisConnection {
  return {
    call: (command, ...args) => client.sendCommand([command, ...args.map(String)]),
    duplicate: () => new Subscriber(client.duplicate()),
  };
}

class Subscriber implements RedisSubscriber {
  readonly #client: NodeRedisSubscriber;
  readonly #connected: Promise<unknown>;
  readonly #listeners: ((channel: string, message: string) => void)[] = [];

  constructor(client: NodeRedisSubscriber) {
    this.#client = client;
    // Without a listener an error would end the process; the driver reconnects by itself and subscribes anew.
    client.on('error', () => {});
    this.#connected = client.connect();
    this.#connected.catch(() => {});
  }

  async subscribe(channel: string): Promise<void> {
    await this.#connected;
    await this.#client.subscribe(channel, (message) => {
      for (const listener of this.#listeners) listener(channel, message);
    });
  }

  async unsubscribe(channel: string): Promise<void> {
    await this.#connected;
    await this.#client.unsubscribe(channel);
  }

  on(event: 'message', listener: (channel: string, message: string) => void): void;
  on(event: 'error', listener: (error: Error) => void): void;
  on(
    event: 'message' | 'error',
    listener: ((channel: string, message: string) => void) | ((error: Error) => void),
  ): void {
    if (event === 'message') this.#listeners.push(listener as (channel: string, message: string) => void);
    else this.#client.on('error', listener as (error: Error) => void);
  }

  disconnect(): void {
    this.#client.destroy();
  }
}
