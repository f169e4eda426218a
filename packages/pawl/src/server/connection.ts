import type { Timer } from '../clock.ts';
import { InvalidArgumentError, LimitError, type PawlError, UnauthenticatedError } from '../errors.ts';
import type { SessionEvent } from '../node/service.ts';
import type { Call, Hello, Method } from '../protocol/calls.ts';
import { writeError } from '../protocol/errors.ts';
import { Outbox } from '../protocol/outbox.ts';
import { readCall } from '../protocol/read-call.ts';
import { readFrame } from '../protocol/read-frame.ts';
import { type ResultOf, writeEvent, writeReply } from '../protocol/results.ts';
import { CLOSE_CODES, type Transport } from '../protocol/transport.ts';
import { TransientMap } from '../transient-map.ts';
import { FairShare } from './fair-share.ts';
import type { Counter } from './metrics/metric.ts';
import { OpenedSessions } from './opened-sessions.ts';
import type { ServerParts } from './parts.ts';
import type { Principal } from './principal.ts';
import { refusalCode } from './refusal-code.ts';
import { Strangers } from './strangers.ts';

/** So long a connection may take to say who it is, in ms. */
const AUTHENTICATION_LIMIT_MS = 5000;
/** A client that has left so many bytes unread is not read from, ... */
const SLOW_BYTES = 512 * 1024;
/** ... and if it does not catch up in this time it is cut off, in ms. */
const SLOW_LIMIT_MS = 15_000;
const DONE = Promise.resolve(null);
const GOODBYE = JSON.stringify({ event: 'goaway' });

/** One client's connection: reads its requests, has them done, and tells it of what becomes of them. */
export class Connection {
  readonly #parts: ServerParts;
  readonly #transport: Transport;
  readonly #outbox: Outbox;
  readonly #onClosed: (connection: Connection) => void;
  /** Numbers of requests without an answer. */
  readonly #inFlight = new TransientMap<number, true>();
  readonly #subscriptions = new Map<string, () => void>();
  readonly #strangers: Strangers;
  readonly #share: FairShare<Readonly<Record<string, unknown>>>;
  #principal: Principal | undefined;
  #authenticationTimer: Timer | undefined;
  /** Set while the client does not read. */
  #slowTimer: Timer | undefined;
  readonly #opened: OpenedSessions;
  #closed = false;

  /** @param principal `undefined` where the first message has to say who asks. */
  constructor(
    parts: ServerParts,
    transport: Transport,
    principal: Principal | undefined,
    onClosed: (connection: Connection) => void = () => {},
  ) {
    this.#parts = parts;
    this.#transport = transport;
    this.#onClosed = onClosed;
    this.#opened = new OpenedSessions(parts.sessions, parts.limits.sessionsPerConnection);
    this.#strangers = new Strangers(parts.sessions, parts.limits.unknownSessions);
    const mayRead = () => this.#slowTimer === undefined && !this.#closed;
    this.#share = new FairShare(parts.sharers, transport, (message) => this.#onRequest(message), mayRead);
    // What a client can read is not limited by what it may send.
    const limits = { frameBytes: parts.limits.frameBytes, messagesPerFrame: Number.POSITIVE_INFINITY };
    this.#outbox = new Outbox(transport, limits, () => this.#checkReader());
    if (principal === undefined) this.#awaitAuthentication();
    else this.#welcome(principal);
    transport.start({
      onFrame: (frame) => this.#onFrame(frame),
      onDrain: () => this.#onDrain(),
      onClose: () => this.#onClose(),
    });
  }

  /** Requests that are being worked on. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** Asks the client to go on elsewhere, while this connection still works. */
  sendAway(): void {
    this.#outbox.post(GOODBYE);
    this.#outbox.flush();
  }

  close(code: number, reason: string): void {
    if (this.#closed) return;
    this.#outbox.flush();
    this.#transport.close(code, reason);
  }

  cut(): void {
    this.#transport.cut();
  }

  #awaitAuthentication(): void {
    this.#authenticationTimer = this.#parts.clock.setTimer(
      AUTHENTICATION_LIMIT_MS,
      () => this.close(CLOSE_CODES.unauthenticated, 'no token came'),
      { keepProcess: false },
    );
  }

  #welcome(principal: Principal): void {
    this.#authenticationTimer?.cancel();
    this.#principal = principal;
    const { guarantees, limits } = this.#parts;
    const { frameBytes, messagesPerFrame, requestsInFlight } = limits;
    const hello: Hello = {
      event: 'hello',
      guarantees,
      limits: { frameBytes, messagesPerFrame, requestsInFlight },
    };
    this.#outbox.post(JSON.stringify(hello));
  }

  #onFrame(frame: string): void {
    if (this.#closed) return;
    const messages = readFrame(frame, this.#parts.limits.messagesPerFrame);
    if (messages === undefined) {
      this.#breakOff(
        CLOSE_CODES.malformed,
        new InvalidArgumentError('frame', 'a JSON array of messages, no longer than the limit', frame),
      );
      return;
    }
    this.#share.add(messages);
  }

  #onRequest({ id, method, params, traceparent }: Readonly<Record<string, unknown>>): void {
    if (this.#closed) return;
    if (!Number.isSafeInteger(id) || this.#inFlight.has(id as number)) {
      const expected = 'a whole number that no request without an answer has';
      this.#breakOff(CLOSE_CODES.malformed, new InvalidArgumentError('id', expected, id));
      return;
    }
    this.#onMessage(id as number, method, params, traceparent);
  }

  #onMessage(id: number, method: unknown, params: unknown, traceparent: unknown): void {
    let call: Call;
    try {
      call = readCall(method, params, traceparent);
      if (this.#inFlight.size >= this.#parts.limits.requestsInFlight)
        throw new LimitError('requestsInFlight', this.#parts.limits.requestsInFlight, 'wait for answers');
    } catch (error) {
      this.#refuse(id, error);
      return;
    }
    if (this.#principal === undefined || call.method === 'authenticate') this.#authenticate(id, call);
    else this.#serve(id, call, this.#principal);
  }

  #authenticate(id: number, call: Call): void {
    const { authenticator } = this.#parts;
    try {
      if (call.method !== 'authenticate') throw new UnauthenticatedError('no token came');
      const principal = authenticator?.authenticate(call.token) ?? this.#principal;
      if (principal === undefined) throw new UnauthenticatedError('there are no tokens here');
      this.#outbox.post(writeReply(id, null));
      if (this.#principal === undefined) this.#welcome(principal);
      else this.#principal = principal;
    } catch (error) {
      this.#refuse(id, error);
      this.#parts.log.note('warn', 'authenticationFailed', { protocol: 'websocket' });
      this.close(CLOSE_CODES.unauthenticated, error instanceof Error ? error.message.slice(0, 100) : '');
    }
  }

  #serve(id: number, call: Call, principal: Principal): void {
    this.#inFlight.set(id, true);
    try {
      this.#strangers.admit(call, (isFirst) => this.#answer(id, call, principal, isFirst));
    } catch (error) {
      this.#inFlight.delete(id);
      this.#refuse(id, error);
    }
  }

  #answer(id: number, call: Call, principal: Principal, isFirst: boolean): void {
    const { load } = this.#parts;
    let counted = false;
    const over = (answered: boolean) => {
      this.#inFlight.delete(id);
      if (counted) load.end();
      if (isFirst) this.#strangers.end(call, answered);
    };
    const answer = (result: ResultOf<Method>) => {
      over(true);
      if (!this.#closed) this.#outbox.post(writeReply(id, result));
      this.#checkStrangers();
    };
    const refuse = (error: unknown) => {
      over(false);
      this.#refuse(id, error);
      if (refusalCode(error) === 'PAWL_UNAUTHENTICATED')
        this.close(CLOSE_CODES.unauthenticated, 'the token has expired');
      this.#checkStrangers();
    };
    try {
      load.begin(call.method);
      counted = true;
    } catch (error) {
      refuse(error);
      return;
    }
    const fault = (error: unknown) => this.#parts.log.fault('connection', error);
    this.#perform(call, principal).then(answer, refuse).catch(fault);
  }

  #checkStrangers(): void {
    if (this.#strangers.areTooMany) this.close(CLOSE_CODES.limit, 'too many sessions that are none');
  }

  #perform(call: Call, principal: Principal): Promise<ResultOf<Method>> {
    try {
      return this.#ask(call, principal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #ask(call: Call, principal: Principal): Promise<ResultOf<Method>> {
    switch (call.method) {
      case 'listen':
        this.#listen(call.session);
        return DONE;
      case 'unlisten':
        this.#subscriptions.get(call.session)?.();
        this.#subscriptions.delete(call.session);
        return DONE;
      case 'ping':
      case 'authenticate':
        return DONE;
      case 'openSession':
        return this.#opened.open(() => this.#parts.desk.perform(principal, call));
      case 'closeSession':
        this.#opened.remove(call.session);
        return this.#parts.desk.perform(principal, call);
      default:
        return this.#parts.desk.perform(principal, call);
    }
  }

  #listen(session: string): void {
    if (this.#subscriptions.has(session)) return;
    const { sessionsPerConnection: most } = this.#parts.limits;
    if (this.#subscriptions.size >= most)
      throw new LimitError('sessionsPerConnection', most, 'share sessions');
    const stop = this.#parts.sessions.subscribe(session, (event) => this.#tell(session, event));
    this.#subscriptions.set(session, stop);
  }

  #tell(session: string, event: SessionEvent): void {
    if (!this.#closed) this.#outbox.post(writeEvent(session, event));
  }

  #refuse(id: number, error: unknown): void {
    const { metrics, log } = this.#parts;
    countRefusal(metrics.refused, error);
    if (refusalCode(error) === undefined) log.fault('connection', error);
    if (!this.#closed) this.#outbox.post(JSON.stringify({ id, error: writeError(error) }));
  }

  /** Nothing more is read from a client that does not speak the protocol. */
  #breakOff(code: number, error: PawlError): void {
    countRefusal(this.#parts.metrics.refused, error);
    this.#outbox.post(JSON.stringify({ event: 'error', error: writeError(error) }));
    this.close(code, error.code);
    this.#onClose();
  }

  /** Of a client that does not read nothing is read either, so that it cannot ask for more; and it has not for ever. */
  #checkReader(): void {
    const { limits, clock } = this.#parts;
    const { bufferedBytes } = this.#outbox;
    if (this.#closed) return;
    if (bufferedBytes > limits.bufferedBytes) this.#cutReader();
    else if (bufferedBytes > SLOW_BYTES && this.#slowTimer === undefined) {
      this.#transport.pause();
      this.#slowTimer = clock.setTimer(SLOW_LIMIT_MS, () => this.#cutReader(), { keepProcess: false });
    }
  }

  #onDrain(): void {
    this.#slowTimer?.cancel();
    this.#slowTimer = undefined;
    if (this.#closed) return;
    if (!this.#share.isFull) this.#transport.resume();
    this.#outbox.flush();
  }

  #cutReader(): void {
    this.#parts.log.note('warn', 'slowReaderCut', { bufferedBytes: this.#outbox.bufferedBytes });
    this.#transport.cut();
    this.#onClose();
  }

  #onClose(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#authenticationTimer?.cancel();
    this.#slowTimer?.cancel();
    this.#share.stop();
    for (const stop of this.#subscriptions.values()) stop();
    this.#subscriptions.clear();
    this.#onClosed(this);
  }
}

function countRefusal(refused: Counter, error: unknown): void {
  refused.add(1, refusalCode(error) ?? 'PAWL_SERVER_FAULT');
}
