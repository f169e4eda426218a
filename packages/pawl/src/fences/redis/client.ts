import { createHash } from 'node:crypto';

/** One argument of a command. */
export type RedisArgument = string | number | Uint8Array;

/** What the fence calls on ioredis' `Redis` (or `Cluster`). Typed by structure, so that nobody needs its types. */
export interface IoRedisClient {
  call(command: string, args: (string | Buffer | number)[]): Promise<unknown>;
}

/** What the fence calls on a client of node-redis (the package `redis`), made by `createClient` and connected. */
export interface NodeRedisClient {
  sendCommand(args: (string | Buffer)[]): Promise<unknown>;
}

export type RedisClient = IoRedisClient | NodeRedisClient;

/** Sends one command, whichever driver it is. */
export type Send = (command: string, args: readonly RedisArgument[]) => Promise<unknown>;

export function sender(client: RedisClient): Send | undefined {
  if (typeof client !== 'object' || client === null) return undefined;
  if ('call' in client) return (command, args) => client.call(command, args.map(toWire));
  if ('sendCommand' in client) return (command, args) => client.sendCommand([command, ...args.map(toWire)]);
  return undefined;
}

function toWire(argument: RedisArgument): string | Buffer {
  if (typeof argument === 'string') return argument;
  return typeof argument === 'number' ? String(argument) : Buffer.from(argument);
}

/** A script, sent by its digest where Redis knows it. */
export class Script {
  readonly #text: string;
  readonly #digest: string;

  constructor(text: string) {
    this.#text = text;
    this.#digest = createHash('sha1').update(text).digest('hex');
  }

  async run(send: Send, key: string, args: readonly RedisArgument[]): Promise<unknown> {
    try {
      return await send('EVALSHA', [this.#digest, 1, key, ...args]);
    } catch (error) {
      // Redis knows nothing of it, so it did nothing.
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
    }
    return send('EVAL', [this.#text, 1, key, ...args]);
  }
}
