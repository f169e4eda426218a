import { createHash } from 'node:crypto';
import { sleep } from '../../clock.ts';
import type { Version } from '../engine.ts';
import type { Database, PostgresClient } from './database.ts';

type Listener = (message: string, version: Version) => void;

/** Between two attempts to listen again, in ms. */
const RECONNECT_MS = 100;

/** Inboxes, each a channel of notifications, all on one connection of the pool that is kept. */
export class Inboxes {
  readonly #database: Database;
  readonly #schema: string;
  readonly #listeners = new Map<string, Set<Listener>>();
  #client: Promise<PostgresClient | undefined> | undefined;
  #ready: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(database: Database, schema: string) {
    this.#database = database;
    this.#schema = schema;
  }

  /** Resolves once all subscriptions are in force, or Postgres is away: then news are lost, and the node's slow poll finds out. */
  get ready(): Promise<unknown> {
    return this.#ready;
  }

  /** A channel's name is an identifier, which is short; an inbox may be anything. */
  channelOf(inbox: string): string {
    return `pawl_${createHash('md5').update(`${this.#schema}/${inbox}`).digest('hex')}`;
  }

  subscribe(inbox: string, listener: Listener): () => void {
    const channel = this.channelOf(inbox);
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners);
    listeners.add(listener);
    if (listeners.size === 1) this.#tell(`LISTEN ${channel}`);
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0 || this.#listeners.get(channel) !== listeners) return;
      this.#listeners.delete(channel);
      if (!this.#closed) this.#tell(`UNLISTEN ${channel}`);
    };
  }

  close(): void {
    this.#closed = true;
    this.#listeners.clear();
    // One that is yet to come, which may take for ever, is given back when it comes.
    void this.#client?.then((client) => client?.release(true));
  }

  #tell(statement: string): void {
    const told = this.#connection()
      .then((client) => client?.query(statement))
      .catch(leaveToReconnection);
    this.#ready = Promise.all([this.#ready, told]);
  }

  #connection(): Promise<PostgresClient | undefined> {
    this.#client ??= this.#connect();
    return this.#client;
  }

  async #connect(): Promise<PostgresClient | undefined> {
    try {
      const client = await this.#database.pool.connect();
      let over = false;
      const onEnd = () => {
        if (over) return;
        over = true;
        this.#lost(client);
      };
      // Without a listener a lost connection would end the process.
      client.on('error', onEnd);
      client.on('end', onEnd);
      client.on('notification', ({ channel, payload = '' }) => {
        const space = payload.indexOf(' ');
        const version = BigInt(payload.slice(0, space));
        for (const listener of this.#listeners.get(channel) ?? [])
          listener(payload.slice(space + 1), version);
      });
      return client;
    } catch {
      this.#listenAgainSoon();
      return undefined;
    }
  }

  #lost(client: PostgresClient): void {
    if (this.#closed) return;
    client.release(true);
    this.#listenAgainSoon();
  }

  #listenAgainSoon(): void {
    this.#client = undefined;
    void sleep(this.#database.clock, RECONNECT_MS, { keepProcess: false }).then(() => {
      if (this.#closed || this.#client !== undefined) return;
      for (const channel of this.#listeners.keys()) this.#tell(`LISTEN ${channel}`);
    });
  }
}

function leaveToReconnection(): void {}
