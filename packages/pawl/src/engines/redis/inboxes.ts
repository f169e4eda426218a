import type { Version } from '../engine.ts';
import type { RedisConnection, RedisSubscriber } from './client.ts';

type Listener = (message: string, version: Version) => void;

/** Inboxes, each a channel of Redis, all on one connection of the engine's own. */
export class Inboxes {
  readonly #client: RedisConnection;
  readonly #channels: string;
  readonly #listeners = new Map<string, Set<Listener>>();
  #subscriber: RedisSubscriber | undefined;
  #ready: Promise<unknown> = Promise.resolve();

  /** @param channels the beginning of all channels' names. */
  constructor(client: RedisConnection, channels: string) {
    this.#client = client;
    this.#channels = channels;
  }

  /** Resolves once all subscriptions are in force, or Redis is away: then news are lost, and the node's slow poll finds out. */
  get ready(): Promise<unknown> {
    return this.#ready;
  }

  subscribe(inbox: string, listener: Listener): () => void {
    const channel = this.#channels + inbox;
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners);
    listeners.add(listener);
    if (listeners.size === 1) {
      const subscribed = this.#connection().subscribe(channel).catch(leaveToReconnection);
      this.#ready = Promise.all([this.#ready, subscribed]);
    }
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0 || this.#listeners.get(channel) !== listeners) return;
      this.#listeners.delete(channel);
      this.#subscriber?.unsubscribe(channel).catch(leaveToReconnection);
    };
  }

  close(): void {
    this.#listeners.clear();
    this.#subscriber?.disconnect();
    this.#subscriber = undefined;
  }

  #connection(): RedisSubscriber {
    if (this.#subscriber !== undefined) return this.#subscriber;
    const subscriber = this.#client.duplicate();
    subscriber.on('error', leaveToReconnection);
    subscriber.on('message', (channel, payload) => {
      const space = payload.indexOf(' ');
      const version = BigInt(payload.slice(0, space));
      for (const listener of this.#listeners.get(channel) ?? []) listener(payload.slice(space + 1), version);
    });
    this.#subscriber = subscriber;
    return subscriber;
  }
}

/** The driver reconnects by itself and subscribes anew. */
function leaveToReconnection(): void {}
