import { type Clock, sleep } from '../../clock.ts';
import { ClosedError, EngineUnavailableError, ForbiddenError, UnauthenticatedError } from '../../errors.ts';
import type { Call, Hello } from '../../protocol/calls.ts';
import { readHello } from '../../protocol/hello.ts';
import { Outbox } from '../../protocol/outbox.ts';
import { readFrame } from '../../protocol/read-frame.ts';
import type { ResultOf } from '../../protocol/results.ts';
import { CLOSE_CODES, type Closing, type Transport } from '../../protocol/transport.ts';
import { writeCall } from '../../protocol/write-call.ts';
import type { Dialer } from './dialer.ts';
import { Requests } from './requests.ts';

/** So long a server may take to greet, in ms. */
const HELLO_LIMIT_MS = 3000;
/** A server that owes answers and says nothing for so long is asked whether it is there, in ms, ... */
const QUIET_MS = 2000;
/** ... and given up if it does not answer that either. */
const PING_LIMIT_MS = 1000;
/** Pauses between rounds of attempts: doubled from the first to the longest, in ms, and each shortened by up to a half. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1000;

export interface LinkOptions {
  /** Tried in turn; never empty. */
  readonly urls: readonly string[];
  readonly dialer: Dialer;
  readonly clock: Clock;
  /** Called whenever a server has greeted, before anything else is sent to it. */
  readonly onConnected: () => void;
  readonly onEvent: (message: Readonly<Record<string, unknown>>) => void;
  readonly onSend: (call: Call) => Call;
  readonly onDoubt: (call: Call) => void;
}

/**
 * The way to a server: one connection at a time, and another one after it drops, to the next server of the list. Requests
 * without an answer are sent again. The sessions know nothing of it, as long as it takes less than their TTL.
 */
export class Link {
  readonly #options: LinkOptions;
  readonly #requests: Requests;
  readonly #greeting = Promise.withResolvers<Hello>();
  #current: { readonly transport: Transport; readonly outbox: Outbox } | undefined;
  #connecting = false;
  #closed = false;
  #attempts = 0;
  #lastFailure: unknown;
  #pings = 0;
  #quietSinceMs = 0;
  #pingedAtMs: number | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    const { clock, onSend, onDoubt } = options;
    this.#requests = new Requests({ clock, onSend, onDoubt, onLook: () => this.#listenForLife() });
    this.#greeting.promise.catch(() => {});
    this.#connect();
  }

  /** The first greeting. @throws UnauthenticatedError, ForbiddenError; does not settle while no server can be reached. */
  get greeting(): Promise<Hello> {
    return this.#greeting.promise;
  }

  /** Why the last attempt to reach a server failed, if one did. */
  get lastFailure(): unknown {
    return this.#lastFailure;
  }

  /**
   * Asks the server; sends the request again if a connection drops meanwhile.
   *
   * @throws EngineUnavailableError, UnauthenticatedError, ClosedError and what the server refuses
   */
  call<C extends Call>(call: C): Promise<ResultOf<C['method']>> {
    if (this.#closed) return Promise.reject(new ClosedError('This Pawl client'));
    if (!this.#requests.awaitsAnswer) this.#heard();
    const answer = this.#requests.add(call);
    if (this.#current === undefined) this.#connect();
    return answer;
  }

  close(): void {
    this.#closed = true;
    this.#requests.close();
    this.#current?.outbox.flush();
    this.#current?.transport.close(1000, '');
    this.#current = undefined;
    this.#greeting.reject(new ClosedError('This Pawl client'));
  }

  #connect(): void {
    if (this.#connecting || this.#closed) return;
    this.#connecting = true;
    void this.#tryServers().finally(() => {
      this.#connecting = false;
    });
  }

  async #tryServers(): Promise<void> {
    const { urls, dialer, clock } = this.#options;
    for (let failures = 0; !this.#closed; ) {
      const url = urls[this.#attempts++ % urls.length] ?? '';
      try {
        await this.#greet(await dialer.dial(url));
        return;
      } catch (error) {
        this.#lastFailure = error;
        if (error instanceof UnauthenticatedError || error instanceof ForbiddenError) {
          this.#greeting.reject(error);
          this.#requests.failAll(error);
          return;
        }
      }
      failures += 1;
      if (failures % urls.length !== 0) continue;
      const round = failures / urls.length - 1;
      const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(round, 10));
      // All clients of a server that fell lose it at the same moment; they must not come back at the same.
      await sleep(clock, Math.ceil(pauseMs * (0.5 + Math.random() / 2)), { keepProcess: false });
    }
  }

  /** Waits for the greeting; from then on this connection is the current one. */
  #greet(transport: Transport): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = this.#options.clock.setTimer(
      HELLO_LIMIT_MS,
      () => {
        transport.cut();
        reject(new EngineUnavailableError('The server did not greet.', 'definite'));
      },
      { keepProcess: false },
    );
    transport.start({
      onDrain: () => {
        if (this.#current?.transport === transport) this.#current.outbox.flush();
      },
      onFrame: (frame) => {
        this.#heard();
        try {
          for (const message of readFrame(frame, Number.POSITIVE_INFINITY) ?? []) {
            if (message.event === 'hello') {
              timer.cancel();
              this.#use(transport, readHello(message));
              resolve();
            } else this.#onMessage(transport, message);
          }
        } catch {
          // Whoever sends what cannot be read is no server of this protocol.
          transport.cut();
        }
      },
      onClose: (closing) => {
        timer.cancel();
        reject(reasonOf(closing));
        this.#dropped(transport, closing);
      },
    });
    return promise;
  }

  #onMessage(transport: Transport, message: Readonly<Record<string, unknown>>): void {
    if (message.event === 'goaway') this.#moveOn(transport);
    else if (message.event !== undefined) this.#options.onEvent(message);
    else this.#requests.answered(message);
  }

  #use(transport: Transport, hello: Hello): void {
    if (this.#closed) {
      transport.close(1000, '');
      return;
    }
    const former = this.#current;
    const outbox = new Outbox(transport, hello.limits);
    this.#current = { transport, outbox };
    this.#requests.disconnected();
    this.#options.onConnected();
    this.#requests.connected((message) => outbox.post(message), hello.limits.requestsInFlight);
    this.#greeting.resolve(hello);
    former?.transport.close(1000, 'moved on');
  }

  /** The server is about to stop: goes on with it until another one has greeted. */
  #moveOn(transport: Transport): void {
    if (this.#current?.transport === transport) this.#connect();
  }

  #dropped(transport: Transport, closing: Closing): void {
    if (this.#current?.transport !== transport) return;
    this.#current = undefined;
    this.#requests.disconnected();
    if (closing.code === CLOSE_CODES.unauthenticated) this.#requests.failAll(reasonOf(closing));
    else this.#connect();
  }

  #heard(): void {
    this.#quietSinceMs = this.#options.clock.monotonicMs();
    this.#pingedAtMs = undefined;
  }

  #listenForLife(): void {
    if (this.#current === undefined || !this.#requests.awaitsAnswer) return;
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#pingedAtMs !== undefined) {
      if (nowMs - this.#pingedAtMs >= PING_LIMIT_MS) this.#current.transport.cut();
    } else if (nowMs - this.#quietSinceMs >= QUIET_MS) {
      this.#pingedAtMs = nowMs;
      this.#pings += 1;
      this.#current.outbox.post(writeCall(-this.#pings, { method: 'ping' }));
    }
  }
}

function reasonOf({ code, reason }: Closing): UnauthenticatedError | EngineUnavailableError {
  if (code === CLOSE_CODES.unauthenticated)
    return new UnauthenticatedError(reason || 'it closed the connection');
  return new EngineUnavailableError(`The server closed the connection (${code} ${reason}).`, 'indefinite');
}
