import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import type { Pawl } from '../../src/client/pawl.ts';
import { type ConnectOptions, connect } from '../../src/client/remote/connect.ts';
import type { Engine } from '../../src/engines/engine.ts';
import { memoryEngine } from '../../src/engines/memory/index.ts';
import { type LogEntry, type PawlServer, type ServeOptions, serve } from '../../src/server/index.ts';

export interface Running {
  readonly server: PawlServer;
  readonly engine: Engine;
  readonly entries: LogEntry[];
}

/** A server on a free port, which the end of the test closes. */
export async function running(options: Partial<ServeOptions> = {}): Promise<Running> {
  const engine = options.engine ?? memoryEngine();
  const entries: LogEntry[] = [];
  const log = (entry: LogEntry) => void entries.push(entry);
  const server = await serve({ engine, port: 0, graceMs: 50, log, ...options });
  onTestFinished(async () => {
    await server.close();
    if (options.engine === undefined) await engine.close();
  });
  return { server, engine, entries };
}

/** A client, which the end of the test closes. */
export async function client(urls: string | readonly string[], options: ConnectOptions = {}): Promise<Pawl> {
  const pawl = await connect(urls, options);
  onTestFinished(() => pawl.close());
  return pawl;
}

type Message = Record<string, unknown>;

/** A WebSocket without manners: sends anything, and keeps what comes. */
export class RawSocket {
  readonly socket: WebSocket;
  readonly messages: Message[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly #waits = new Set<() => void>();

  constructor(url: string, headers: Record<string, string> = {}) {
    this.socket = new WebSocket(`${url.replace('http', 'ws')}/v1/session`, 'pawl.v1', { headers });
    this.socket.on('message', (data) => {
      this.messages.push(...JSON.parse(data.toString()));
      this.#wake();
    });
    this.socket.on('error', () => {});
    this.closed = new Promise((resolve) =>
      this.socket.on('close', (code, reason) => {
        resolve({ code, reason: reason.toString() });
        this.#wake();
      }),
    );
    onTestFinished(() => this.socket.terminate());
  }

  async opened(): Promise<this> {
    await new Promise((resolve) => this.socket.once('open', resolve));
    return this;
  }

  send(...messages: unknown[]): void {
    this.socket.send(JSON.stringify(messages));
  }

  /** The first message that fits; waits for it. */
  async find(fits: (message: Message) => boolean): Promise<Message> {
    for (;;) {
      const found = this.messages.find(fits);
      if (found !== undefined) return found;
      if (this.socket.readyState === WebSocket.CLOSED)
        throw new Error('The connection closed before it came.');
      await new Promise<void>((resolve) => this.#waits.add(resolve));
    }
  }

  /** The answer to a request. */
  answer(id: number): Promise<Message> {
    return this.find((message) => message.id === id);
  }

  /** Opens a session and @returns its id. */
  async session(ttlMs = 10_000): Promise<string> {
    this.send({ id: 900, method: 'openSession', params: { ttlMs } });
    return String((await this.answer(900)).result);
  }

  #wake(): void {
    for (const wake of this.#waits) wake();
    this.#waits.clear();
  }
}

/** A raw socket that the server has greeted. */
export async function greeted(url: string, headers?: Record<string, string>): Promise<RawSocket> {
  const raw = new RawSocket(url, headers);
  await raw.find((message) => message.event === 'hello');
  return raw;
}

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: Message;
}

/** Asks by HTTP, with a JSON body where there is one. */
export async function ask(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(url + path, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const type = response.headers.get('content-type') ?? '';
  const text = await response.text();
  return { status: response.status, type, body: type.includes('json') ? JSON.parse(text) : { text } };
}

/** An acquire as it is sent, of one exclusive lock. */
export function acquireMessage(id: number, session: string, name: string, wait = false): unknown {
  const locks = [{ name, mode: 'exclusive', permits: null }];
  return { id, method: 'acquire', params: { session, request: `r${id}`, locks, wait } };
}

/** Waits until `fits`, looking every few ms. */
export async function until(fits: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await fits())) await new Promise((resolve) => setTimeout(resolve, 5));
}
