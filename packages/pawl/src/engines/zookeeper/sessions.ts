import { InvalidArgumentError, TtlTooShortError } from '../../errors.ts';
import { ANSWER_LIMIT_MS, type Connection, unavailable } from './connection.ts';
import { dial } from './dial.ts';
import { type Keeper, partsOf, refused } from './keeper.ts';
import type { Layout } from './layout.ts';
import { decodeMarker, type Marker } from './marker.ts';
import {
  CODE,
  dataOperation,
  deleteOperation,
  encodeMulti,
  NEW_SESSION,
  NODE,
  OPERATION,
  type ZkSession,
} from './protocol.ts';
import { Turns } from './turns.ts';

/** So many connections are opened at a time: a server has but a short queue for newcomers. */
const DIALS = 32;
/** The longest timeout that the protocol can ask for, in ms. */
const LONGEST_MS = 2 ** 31 - 1;
const SHORTEST_LIMIT_MS = 500;
const EMPTY = Buffer.alloc(0);

export interface SessionsOptions {
  readonly keeper: Keeper;
  readonly layout: Layout;
  readonly maxSessions: number;
  readonly engine: string;
}

/**
 * The sessions of Pawl's, each a session of ZooKeeper's on a connection of its own, which nobody but {@link keepAlive} pings. A session is
 * alive while its ephemeral node is there: so anybody can end it, and ZooKeeper ends it when it was not kept alive.
 */
export class Sessions {
  readonly #options: SessionsOptions;
  /** Connections of this engine by session; a session without one is attached to when it is kept alive. */
  readonly #held = new Map<string, Connection>();
  readonly #attaching = new Map<string, Promise<Connection | undefined>>();
  readonly #turns = new Turns(DIALS);
  /** So many connections are being added. */
  #coming = 0;
  #closed = false;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** @throws EngineUnavailableError, TtlTooShortError, InvalidArgumentError where the server keeps no such session. */
  async open(id: string, ttlMs: number): Promise<boolean> {
    if ((await this.#look([id], [id])).markers.has(id)) return (await this.keepAlive([id])).has(id);
    if (ttlMs > LONGEST_MS) {
      throw new InvalidArgumentError('ttlMs', `at most ${LONGEST_MS} for ZooKeeper`, ttlMs);
    }
    if (await this.#inTurn(() => this.#openNew(id, ttlMs))) return true;
    return (await this.keepAlive([id])).has(id);
  }

  /** @returns those that were alive and have their whole TTL again. @throws EngineUnavailableError */
  async keepAlive(ids: readonly string[]): Promise<Set<string>> {
    const first = await this.#ping(ids);
    const pinged = new Set(first.pinged);
    if (first.failed.size > 0) {
      // A connection that broke tells nothing of its session: attach once more.
      const second = await this.#ping([...first.failed.keys()]);
      for (const id of second.pinged) pinged.add(id);
      for (const failure of second.failed.values()) throw failure;
    }
    const { living } = await this.#look([...pinged], []);
    for (const id of ids) if (!living.has(id)) this.#letGo(id);
    return living;
  }

  async end(id: string): Promise<void> {
    await this.#options.keeper.operate(deleteOperation(this.#options.layout.session(id)), CODE.noNode);
    this.#letGo(id);
  }

  async forget(ids: readonly string[]): Promise<void> {
    const { keeper, layout } = this.#options;
    const { living } = await this.#look(ids, []);
    const over = ids.filter((id) => !living.has(id));
    await Promise.all(over.map((id) => keeper.operate(deleteOperation(layout.marker(id)), CODE.noNode)));
  }

  /** Ends the connections. The sessions stay as they are. */
  close(): void {
    this.#closed = true;
    for (const connection of [...this.#held.values()]) connection.drop();
  }

  /** @returns those that have their whole TTL again, if they are alive at all; and those of which nothing is known. */
  async #ping(ids: readonly string[]) {
    const unheld = ids.filter((id) => !this.#held.has(id));
    const { living, markers } = await this.#look(unheld, unheld);
    const pinged = new Set<string>();
    const failed = new Map<string, unknown>();
    const ping = async (id: string) => {
      const marker = living.has(id) ? markers.get(id) : undefined;
      const connection = this.#held.get(id) ?? (marker && (await this.#attach(id, marker)));
      if (connection === undefined) return;
      await connection.ping();
      pinged.add(id);
    };
    await Promise.all(ids.map((id) => ping(id).catch((error) => failed.set(id, error))));
    return { pinged, failed };
  }

  /** @returns `undefined` where the session is over. */
  #attach(id: string, { session, ttlMs }: Marker): Promise<Connection | undefined> {
    // Of two connections to one session the server closes the first.
    let attaching = this.#attaching.get(id);
    if (attaching === undefined) {
      attaching = this.#inTurn(async () => {
        const connection = await this.#dial(id, session, ttlMs);
        // The server knows it to have expired a moment before the node goes.
        if (connection === undefined) await this.end(id);
        else if (connection.open) this.#held.set(id, connection);
        return connection;
      }).finally(() => this.#attaching.delete(id));
      this.#attaching.set(id, attaching);
    }
    return attaching;
  }

  /** Runs what adds a connection, unless there are as many as there may be. */
  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    return this.#turns.take(async () => {
      const { maxSessions } = this.#options;
      if (this.#closed) throw unavailable('the engine was closed', 'definite');
      if (this.#held.size + this.#coming >= maxSessions) {
        throw unavailable(`this engine keeps ${maxSessions} sessions already, its maxSessions`, 'definite');
      }
      this.#coming += 1;
      try {
        return await task();
      } finally {
        this.#coming -= 1;
      }
    });
  }

  /** @returns whether the session is new. */
  async #openNew(id: string, ttlMs: number): Promise<boolean> {
    const connection = await this.#dial(id, NEW_SESSION, ttlMs);
    if (connection === undefined) throw unavailable('it refused a new session', 'definite');
    const grantedMs = connection.timeoutMs;
    if (grantedMs === ttlMs && (await this.#mark(id, connection, ttlMs))) return true;
    await connection.closeSession();
    if (grantedMs === ttlMs) return false;
    if (grantedMs > ttlMs) throw new TtlTooShortError('ttlMs', ttlMs, grantedMs, this.#options.engine);
    throw new InvalidArgumentError('ttlMs', `at most ${grantedMs} ms, the server's maxSessionTimeout`, ttlMs);
  }

  async #dial(id: string, session: ZkSession, ttlMs: number): Promise<Connection | undefined> {
    const { keeper } = this.#options;
    const limitMs = Math.min(Math.max(ttlMs / 2, SHORTEST_LIMIT_MS), ANSWER_LIMIT_MS);
    let opened: Connection | 'expired' | undefined;
    const onEnd = () => {
      if (this.#held.get(id) === opened) this.#held.delete(id);
    };
    opened = await dial({
      access: keeper.access,
      clock: keeper.clock,
      session,
      timeoutMs: ttlMs,
      lastZxid: 0n,
      answerLimitMs: limitMs,
      welcomeLimitMs: limitMs,
      patienceMs: limitMs,
      onEnd,
    });
    if (opened === 'expired') return undefined;
    if (this.#closed) opened.drop();
    return opened;
  }

  /** Makes the session known. @returns whether it is new. */
  async #mark(id: string, connection: Connection, ttlMs: number): Promise<boolean> {
    const { layout } = this.#options;
    const { session } = connection;
    const marker = { session: session.id.toString(), password: session.password.toString('base64'), ttlMs };
    const { code, body } = await connection.request(
      OPERATION.multi,
      encodeMulti([
        layout.create(layout.marker(id), Buffer.from(JSON.stringify(marker))),
        layout.create(layout.session(id), EMPTY, NODE.ephemeral),
      ]),
    );
    if (body.left === 0) throw refused(code);
    const failed = partsOf(body).find((part) => part.code !== CODE.ok);
    if (failed === undefined) {
      if (connection.open) this.#held.set(id, connection);
      return true;
    }
    if (failed.code !== CODE.nodeExists) throw refused(failed.code);
    return false;
  }

  /** Reads which of `ids` are alive, and the markers of `marked`. */
  async #look(ids: readonly string[], marked: readonly string[]) {
    const { keeper, layout } = this.#options;
    const living = new Set<string>();
    const markers = new Map<string, Marker>();
    if (ids.length + marked.length === 0) return { living, markers };
    const paths = [...ids.map((id) => layout.session(id)), ...marked.map((id) => layout.marker(id))];
    const { results } = await keeper.multiRead(paths.map(dataOperation));
    for (const { code } of results) if (code !== CODE.ok && code !== CODE.noNode) throw refused(code);
    for (const [i, id] of ids.entries()) if (results[i]?.code === CODE.ok) living.add(id);
    for (const [i, id] of marked.entries()) {
      const data = results[ids.length + i]?.data;
      if (data !== undefined) markers.set(id, decodeMarker(id, data.toString()));
    }
    return { living, markers };
  }

  #letGo(id: string): void {
    const connection = this.#held.get(id);
    this.#held.delete(id);
    void connection?.closeSession();
  }
}
