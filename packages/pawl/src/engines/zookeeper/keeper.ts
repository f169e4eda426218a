import { type Clock, sleep, type Timer } from '../../clock.ts';
import { EngineUnavailableError, type ErrorOutcome, InvalidArgumentError } from '../../errors.ts';
import { ANSWER_LIMIT_MS, type Connection, type Reply, unavailable } from './connection.ts';
import { dial } from './dial.ts';
import { type JuteReader, JuteWriter } from './jute.ts';
import {
  CODE,
  codeInWords,
  decodeMulti,
  encodeMulti,
  NEW_SESSION,
  OPERATION,
  type Operation,
  type PartResult,
  type ZkSession,
} from './protocol.ts';
import type { Access } from './servers.ts';

/** The timeout of the session of the main connection, in ms. The server may grant another. */
const TIMEOUT_MS = 10_000;
const WELCOME_LIMIT_MS = 2000;
/** Between two attempts to connect: twice as long each time, in ms. */
const FIRST_BACKOFF_MS = 50;
const LONGEST_BACKOFF_MS = 1000;
/** So often a read is asked whose connection broke. */
const READ_ATTEMPTS = 3;
/** How long the server may take to say farewell, in ms. */
const FAREWELL_MS = 1000;
/** The longest request, in bytes: servers refuse what is above their `jute.maxbuffer`, which is just below 1 MiB unless set. */
export const LONGEST_REQUEST = 1_000_000;
/** Answers after which it may still happen. */
const UNDECIDED: ReadonlySet<number> = new Set([-4, -7, -122]);
const RECURSIVE = 1;
const ANY_WATCHER = 3;

/** What is told of a node and all nodes below it. */
export interface Watcher {
  readonly path: string;
  onEvent(type: number, path: string): void;
  /** Called when the watch came into force, at first and after each time it was not: look what was missed. */
  onForce(): void;
}

/** A transaction that was done or refused as a whole. */
export interface MultiReply {
  readonly zxid: bigint;
  readonly results: readonly PartResult[];
}

/**
 * The engine's main connection, for everything but the sessions of Pawl's: opened when first used, and again whenever it broke. Its own
 * session is kept alive by itself, and says nothing about anybody's liveness but the engine's.
 */
export class Keeper {
  readonly clock: Clock;
  readonly access: Access;
  readonly #watchers = new Map<Watcher, Promise<void>>();
  #session: ZkSession = NEW_SESSION;
  #lastZxid = 0n;
  #connection: Connection | undefined;
  #attempt: Promise<Connection> | undefined;
  #backoffMs = 0;
  #pinger: Timer | undefined;
  #closed = false;

  constructor(access: Access, clock: Clock) {
    this.access = access;
    this.clock = clock;
  }

  /** @throws EngineUnavailableError */
  async request(type: number, body: Uint8Array): Promise<Reply> {
    return (await this.#connected()).request(type, body);
  }

  /** One operation by itself. @returns the server's code. @throws EngineUnavailableError where it is none of `accepted`. */
  async operate({ type, body }: Operation, ...accepted: number[]): Promise<number> {
    const { code } = await this.request(type, body);
    if (code !== CODE.ok && !accepted.includes(code)) throw refused(code);
    return code;
  }

  /**
   * All operations as one transaction, which is done as a whole or not at all.
   *
   * @throws EngineUnavailableError, InvalidArgumentError where it is too large.
   */
  async multi(operations: readonly Operation[]): Promise<MultiReply> {
    const { zxid, code, body } = await this.request(OPERATION.multi, sized('write', encodeMulti(operations)));
    if (body.left > 0) return { zxid, results: partsOf(body) };
    throw refused(code);
  }

  /**
   * All reads from one snapshot, which has everything that was committed before the call.
   *
   * @throws EngineUnavailableError, InvalidArgumentError where it is too large.
   */
  async multiRead(operations: readonly Operation[]): Promise<MultiReply> {
    const asked = sized('query', encodeMulti(operations));
    for (let left = READ_ATTEMPTS; ; left -= 1) {
      try {
        const connection = await this.#connected();
        const path = new JuteWriter().text('/').bytes();
        const synced = connection.request(OPERATION.sync, path);
        const read = connection.request(OPERATION.multiRead, asked);
        const [, { zxid, code, body }] = await Promise.all([synced, read]);
        if (code !== CODE.ok) throw refused(code);
        return { zxid, results: partsOf(body) };
      } catch (error) {
        const broken = error instanceof EngineUnavailableError && error.outcome === 'indefinite';
        if (!broken || left <= 1 || this.#closed) throw error;
      }
    }
  }

  /** Watches a node and all below it from now on. `inForce` resolves once that holds or could not be done for now; it never rejects. */
  watch(watcher: Watcher): { inForce: Promise<void>; stop: () => void } {
    const connection = this.#connection;
    this.#watchers.set(watcher, Promise.resolve());
    // A connection that is yet to be made watches for all who are there by then.
    const watched =
      connection?.open === true
        ? this.#watch(connection, watcher)
        : this.#connected().then(() => this.#watchers.get(watcher));
    const inForce = watched.catch(leaveToReconnection);
    const stop = () => {
      if (!this.#watchers.delete(watcher) || this.#connection === undefined) return;
      const body = new JuteWriter().text(watcher.path).int(ANY_WATCHER).bytes();
      this.#connection.request(OPERATION.removeWatches, body).catch(leaveToReconnection);
    };
    return { inForce, stop };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#watchers.clear();
    this.#pinger?.cancel();
    const connection = this.#connection;
    if (connection === undefined) return;
    await Promise.race([connection.closeSession(), sleep(this.clock, FAREWELL_MS, { keepProcess: false })]);
    connection.drop();
  }

  async #connected(): Promise<Connection> {
    if (this.#closed) throw unavailable('the engine was closed', 'definite');
    if (this.#connection?.open === true) return this.#connection;
    const attempt = this.#connect();
    const { promise: late, reject } = Promise.withResolvers<never>();
    const fail = () => reject(unavailable(`no connection within ${ANSWER_LIMIT_MS} ms`, 'definite'));
    const timer = this.clock.setTimer(ANSWER_LIMIT_MS, fail, { keepProcess: false });
    try {
      return await Promise.race([attempt, late]);
    } finally {
      timer.cancel();
    }
  }

  #connect(): Promise<Connection> {
    if (this.#attempt === undefined) {
      this.#attempt = this.#dial().finally(() => {
        this.#attempt = undefined;
      });
      this.#attempt.catch(() => {
        if (this.#watchers.size > 0 && !this.#closed) this.#connect().catch(leaveToReconnection);
      });
    }
    return this.#attempt;
  }

  async #dial(): Promise<Connection> {
    if (this.#backoffMs > 0) await sleep(this.clock, this.#backoffMs);
    if (this.#closed) throw unavailable('the engine was closed', 'definite');
    this.#backoffMs = Math.min(Math.max(this.#backoffMs * 2, FIRST_BACKOFF_MS), LONGEST_BACKOFF_MS);
    let connection = await this.#dialAs(this.#session);
    if (connection === 'expired') connection = await this.#dialAs(NEW_SESSION);
    if (connection === 'expired') throw unavailable('it refused a new session', 'definite');
    if (this.#closed) {
      void connection.closeSession();
      throw unavailable('the engine was closed', 'definite');
    }
    if (!connection.open) throw unavailable('the connection broke at once', 'definite');
    this.#backoffMs = 0;
    this.#session = connection.session;
    this.#connection = connection;
    this.#pingAgain(connection);
    for (const watcher of this.#watchers.keys()) {
      this.#watchers.set(watcher, this.#watch(connection, watcher).catch(leaveToReconnection));
    }
    return connection;
  }

  #dialAs(session: ZkSession): Promise<Connection | 'expired'> {
    return dial({
      access: this.access,
      clock: this.clock,
      session,
      timeoutMs: TIMEOUT_MS,
      lastZxid: this.#lastZxid,
      welcomeLimitMs: WELCOME_LIMIT_MS,
      patienceMs: ANSWER_LIMIT_MS,
      onEvent: (type, path) => {
        for (const watcher of this.#watchers.keys())
          if (isBelow(path, watcher.path)) watcher.onEvent(type, path);
      },
      onEnd: () => this.#ended(),
    });
  }

  async #watch(connection: Connection, watcher: Watcher): Promise<void> {
    const body = new JuteWriter().text(watcher.path).int(RECURSIVE).bytes();
    const { code } = await connection.request(OPERATION.addWatch, body);
    if (code !== CODE.ok) throw refused(code);
    if (this.#watchers.has(watcher)) watcher.onForce();
  }

  #ended(): void {
    const connection = this.#connection;
    if (connection === undefined || connection.open) return;
    this.#connection = undefined;
    this.#pinger?.cancel();
    if (connection.lastZxid > this.#lastZxid) this.#lastZxid = connection.lastZxid;
    if (this.#watchers.size > 0 && !this.#closed) this.#connect().catch(leaveToReconnection);
  }

  #pingAgain(connection: Connection): void {
    const ping = () => {
      connection.ping().catch(leaveToReconnection);
      this.#pingAgain(connection);
    };
    this.#pinger = this.clock.setTimer(connection.timeoutMs / 3, ping, { keepProcess: false });
  }
}

/** The answers to the parts of a `multi` or `multiRead`. @throws EngineUnavailableError where they cannot be read. */
export function partsOf(body: JuteReader): PartResult[] {
  try {
    return decodeMulti(body);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    // A write may have been done all the same.
    throw unavailable(`it sent what cannot be read: ${said}`, 'indefinite', error);
  }
}

/** The error for an answer that is neither a success nor one that was reckoned with. */
export function refused(code: number): EngineUnavailableError {
  const outcome: ErrorOutcome = UNDECIDED.has(code) ? 'indefinite' : 'definite';
  return unavailable(`it answered with ${codeInWords(code)}`, outcome);
}

function sized(parameter: string, body: Buffer): Buffer {
  if (body.length <= LONGEST_REQUEST) return body;
  const expected = `at most ${LONGEST_REQUEST} bytes for ZooKeeper`;
  throw new InvalidArgumentError(parameter, expected, `${body.length} bytes`);
}

function isBelow(path: string, top: string): boolean {
  return path.startsWith(top) && (path.length === top.length || path[top.length] === '/');
}

function leaveToReconnection(): void {}
