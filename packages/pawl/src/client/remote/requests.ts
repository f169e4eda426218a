import type { Clock, Timer } from '../../clock.ts';
import { ClosedError, EngineUnavailableError, type PawlError } from '../../errors.ts';
import type { Call, Method } from '../../protocol/calls.ts';
import { readError, writeError } from '../../protocol/errors.ts';
import { type ResultOf, readResult } from '../../protocol/results.ts';
import { writeCall } from '../../protocol/write-call.ts';
import { TransientMap } from '../../transient-map.ts';

/** So long a request may take, over however many connections, in ms. */
const REQUEST_LIMIT_MS = 5000;
/** So often it is looked at which requests took too long, in ms. */
const LOOK_EVERY_MS = 250;
/** So much of what may be in flight is left for what cannot wait behind ordinary requests. */
const RESERVE = 64;

interface Pending {
  readonly number: number;
  readonly call: Call;
  readonly dueMs: number;
  /** On how many connections it was sent. */
  sendings: number;
  /** Whether it was sent on the present connection. */
  inFlight: boolean;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export interface RequestsOptions {
  readonly clock: Clock;
  /** Called with a request as it is sent, each time; @returns what to send. */
  readonly onSend: (call: Call) => Call;
  /** Called with a request that was sent and whose answer may be lost: it may happen, and later than one would think. */
  readonly onDoubt: (call: Call) => void;
  /** Called now and then while an answer is awaited. */
  readonly onLook: () => void;
}

/** The requests without an answer: sends them in their order, and again on the next connection. */
export class Requests {
  readonly #options: RequestsOptions;
  readonly #pending = new TransientMap<number, Pending>();
  #unsent: Pending[] = [];
  #inFlight = 0;
  #nextNumber = 1;
  #post: ((message: string) => void) | undefined;
  #mostInFlight = 1;
  #timer: Timer | undefined;

  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  /** @throws EngineUnavailableError where there is no answer in time: `definite` if it was never sent. */
  add<C extends Call>(call: C): Promise<ResultOf<C['method']>> {
    return new Promise((resolve, reject) => {
      const number = this.#nextNumber++;
      const pending: Pending = {
        number,
        call,
        dueMs: this.#options.clock.monotonicMs() + REQUEST_LIMIT_MS,
        sendings: 0,
        inFlight: false,
        resolve: resolve as (value: unknown) => void,
        reject,
      };
      this.#pending.set(number, pending);
      this.#arm();
      if (this.#post === undefined) this.#unsent.push(pending);
      else if (call.method === 'keepAlive' || call.method === 'listen') this.#send(pending);
      else {
        this.#unsent.push(pending);
        this.#pump();
      }
    });
  }

  /**
   * Sends on this connection from now on, beginning with what has no answer yet. Subscriptions go first: an acquire sent before
   * them could be granted unheard.
   */
  connected(post: (message: string) => void, mostInFlight: number): void {
    this.disconnected();
    this.#post = post;
    this.#mostInFlight = Math.max(1, mostInFlight - RESERVE);
    for (const pending of this.#unsent) if (pending.call.method === 'listen') this.#send(pending);
    this.#pump();
  }

  disconnected(): void {
    this.#post = undefined;
    for (const pending of this.#pending.values()) {
      if (pending.inFlight) this.#options.onDoubt(pending.call);
      pending.inFlight = false;
    }
    this.#inFlight = 0;
    this.#unsent = [...this.#pending.values()];
  }

  /** Takes an answer. One to a request that is over is of no interest any more. */
  answered({ id, result, error }: Readonly<Record<string, unknown>>): void {
    const pending = this.#pending.get(id as number);
    if (pending === undefined) return;
    this.#remove(pending);
    try {
      if (error === undefined) pending.resolve(readResult<Method>(pending.call.method, result));
      else pending.reject(readError(error));
    } catch (cause) {
      const message = `The server's answer to ${pending.call.method} cannot be read.`;
      pending.reject(new EngineUnavailableError(message, 'indefinite', { cause }));
    }
    this.#pump();
  }

  /** Whether an answer is awaited from the present connection. */
  get awaitsAnswer(): boolean {
    return this.#inFlight > 0;
  }

  /** Fails all with `error`; what was sent, be it on an earlier connection, may have happened all the same. */
  failAll(error: PawlError): void {
    for (const pending of [...this.#pending.values()]) {
      this.#remove(pending);
      if (pending.inFlight) this.#options.onDoubt(pending.call);
      pending.reject(
        pending.sendings > 0 ? readError({ ...writeError(error), outcome: 'indefinite' }) : error,
      );
    }
    this.#unsent = [];
  }

  close(): void {
    this.failAll(new ClosedError('This Pawl client'));
    this.#post = undefined;
  }

  #send(pending: Pending): void {
    pending.inFlight = true;
    pending.sendings += 1;
    this.#inFlight += 1;
    this.#post?.(writeCall(pending.number, this.#options.onSend(pending.call)));
  }

  #pump(): void {
    if (this.#post === undefined) return;
    while (this.#unsent.length > 0 && this.#inFlight < this.#mostInFlight) {
      const next = this.#unsent.shift();
      if (next !== undefined && !next.inFlight && this.#pending.has(next.number)) this.#send(next);
    }
  }

  #remove(pending: Pending): void {
    this.#pending.delete(pending.number);
    if (pending.inFlight) this.#inFlight -= 1;
    if (this.#pending.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Keeps the process alive: whoever asks wants to hear the answer. */
  #arm(): void {
    this.#timer ??= this.#options.clock.setTimer(LOOK_EVERY_MS, () => {
      this.#timer = undefined;
      this.#expire();
      this.#options.onLook();
      if (this.#pending.size > 0) this.#arm();
    });
  }

  #whyUnsent({ method }: Call, inFlight: number): string {
    return this.#post === undefined
      ? `No server could be reached within ${REQUEST_LIMIT_MS} ms, so ${method} was not sent.`
      : `The server was busy for ${REQUEST_LIMIT_MS} ms with ${inFlight} earlier requests of this client, so ${method} was not sent. Ask for less at the same time.`;
  }

  #expire(): void {
    const nowMs = this.#options.clock.monotonicMs();
    const inFlight = this.#inFlight;
    for (const pending of this.#pending.values()) {
      if (pending.dueMs > nowMs) break;
      this.#remove(pending);
      const wasSent = pending.sendings > 0;
      if (wasSent) this.#options.onDoubt(pending.call);
      const message = wasSent ? unanswered(pending.call) : this.#whyUnsent(pending.call, inFlight);
      pending.reject(new EngineUnavailableError(message, wasSent ? 'indefinite' : 'definite'));
    }
    this.#pump();
  }
}

function unanswered({ method }: Call): string {
  return `The server has not answered ${method} within ${REQUEST_LIMIT_MS} ms.`;
}
