import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../clock.ts';
import { EngineUnavailableError, type ErrorOutcome } from '../../errors.ts';
import { frame } from './frames.ts';
import { JuteReader, JuteWriter } from './jute.ts';
import { CODE, codeInWords, OPERATION, type Welcome, type ZkSession } from './protocol.ts';

/** How long an answer may take, in ms; then the connection counts as broken. */
export const ANSWER_LIMIT_MS = 5000;

/** Numbers with which answers come that are none to a request. */
const XID = { event: -1, ping: -2, auth: -4 } as const;
const EMPTY = Buffer.alloc(0);

/** An answer of the server. */
export interface Reply {
  /** The last transaction that the server had done when it answered: of a write, its own. */
  readonly zxid: bigint;
  readonly code: number;
  readonly body: JuteReader;
}

export interface ConnectionOptions {
  readonly clock: Clock;
  /** The last transaction that was heard of so far. */
  readonly lastZxid: bigint;
  /** How long an answer may take, in ms; {@link ANSWER_LIMIT_MS} unless set. */
  readonly answerLimitMs?: number;
  readonly onEvent?: (type: number, path: string) => void;
  /** Called once when the connection has ended, however. */
  readonly onEnd?: () => void;
}

interface Pending {
  readonly xid: number;
  readonly sentAtMs: number;
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

/** One connection to one server, attached to one session of ZooKeeper's. Sends nothing by itself: no pings. */
export class Connection {
  readonly session: ZkSession;
  /** The session's timeout as the server granted it, in ms. */
  readonly timeoutMs: number;
  readonly #socket: Socket;
  readonly #answerLimitMs: number;
  readonly #options: ConnectionOptions;
  readonly #waiting: Pending[] = [];
  /** Apart, since the protocol does not promise their place among the answers. */
  readonly #pings: Pending[] = [];
  #outbox: Buffer[] = [];
  #lastXid = 0;
  #lastZxid: bigint;
  #timer: Timer | undefined;
  #failure: EngineUnavailableError | undefined;

  constructor(socket: Socket, welcome: Welcome, options: ConnectionOptions) {
    this.#socket = socket;
    this.session = welcome.session;
    this.timeoutMs = welcome.timeoutMs;
    this.#options = options;
    this.#answerLimitMs = options.answerLimitMs ?? ANSWER_LIMIT_MS;
    this.#lastZxid = options.lastZxid;
  }

  /** The last transaction that was heard of. */
  get lastZxid(): bigint {
    return this.#lastZxid;
  }

  get open(): boolean {
    return this.#failure === undefined;
  }

  /** Sends a request behind all that were sent before; answers come in the same order. @throws EngineUnavailableError */
  request(type: number, body: Uint8Array): Promise<Reply> {
    this.#lastXid = this.#lastXid === 2 ** 31 - 1 ? 1 : this.#lastXid + 1;
    return this.#send(this.#lastXid, type, body);
  }

  /** Gives the session its whole timeout again. @throws EngineUnavailableError */
  async ping(): Promise<void> {
    await this.#send(XID.ping, OPERATION.ping, EMPTY);
  }

  /** Says who it is that asks. @throws EngineUnavailableError */
  async authenticate(scheme: string, credentials: string): Promise<void> {
    const body = new JuteWriter().int(0).text(scheme).buffer(Buffer.from(credentials)).bytes();
    const { code } = await this.#send(XID.auth, OPERATION.auth, body);
    if (code !== CODE.ok) throw unavailable(`it refused the credentials: ${codeInWords(code)}`, 'definite');
  }

  /** Ends the session and then the connection. Never rejects. */
  async closeSession(): Promise<void> {
    await this.request(OPERATION.closeSession, EMPTY).catch(() => {});
    this.drop();
  }

  /** Ends the connection; the session lives on until its time is up. */
  drop(reason = 'the connection was closed'): void {
    if (this.#failure !== undefined) return;
    this.#failure = unavailable(reason, 'definite');
    this.#timer?.cancel();
    this.#socket.destroy();
    for (const { reject } of [...this.#waiting.splice(0), ...this.#pings.splice(0)]) {
      reject(unavailable(reason, 'indefinite'));
    }
    this.#options.onEnd?.();
  }

  /** Takes a message of the server's. @throws RangeError where it makes no sense. */
  receive(payload: Buffer): void {
    const body = new JuteReader(payload);
    const xid = body.int();
    const zxid = body.long();
    const code = body.int();
    if (xid === XID.event) {
      const type = body.int();
      body.int();
      this.#options.onEvent?.(type, body.text());
      return;
    }
    if (zxid > this.#lastZxid) this.#lastZxid = zxid;
    const waiting = (xid === XID.ping ? this.#pings : this.#waiting).shift();
    if (waiting?.xid !== xid) throw new RangeError(`an answer to ${xid}, which was not asked next`);
    waiting.resolve({ zxid, code, body });
  }

  #send(xid: number, type: number, body: Uint8Array): Promise<Reply> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#outbox.length === 0) queueMicrotask(() => this.#flush());
    this.#outbox.push(frame(new JuteWriter().int(xid).int(type).bytes(), body));
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
    const waiting = xid === XID.ping ? this.#pings : this.#waiting;
    waiting.push({ xid, sentAtMs: this.#options.clock.monotonicMs(), resolve, reject });
    if (this.#timer === undefined) this.#watchAnswers(this.#answerLimitMs);
    return promise;
  }

  #flush(): void {
    const chunks = this.#outbox;
    this.#outbox = [];
    if (this.#failure === undefined)
      this.#socket.write(chunks.length === 1 ? (chunks[0] ?? EMPTY) : Buffer.concat(chunks));
  }

  #watchAnswers(delayMs: number): void {
    const look = () => {
      this.#timer = undefined;
      const sentAtMs = [this.#waiting[0], this.#pings[0]].flatMap((oldest) => oldest?.sentAtMs ?? []);
      if (sentAtMs.length === 0) return;
      const leftMs = Math.min(...sentAtMs) + this.#answerLimitMs - this.#options.clock.monotonicMs();
      if (leftMs > 0) this.#watchAnswers(leftMs);
      else this.drop(`no answer within ${this.#answerLimitMs} ms`);
    };
    this.#timer = this.#options.clock.setTimer(delayMs, look, { keepProcess: false });
  }
}

/** An error that says what ZooKeeper did not do. */
export function unavailable(why: string, outcome: ErrorOutcome, cause?: unknown): EngineUnavailableError {
  return new EngineUnavailableError(
    `ZooKeeper did not do what was asked: ${why}. Check that it is up and can be written.`,
    outcome,
    cause === undefined ? undefined : { cause },
  );
}
