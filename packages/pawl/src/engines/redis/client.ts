import { createHash } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import { EngineUnavailableError } from '../../errors.ts';

/** What the engine calls on a connection: ioredis' `Redis` has it. Typed by structure, so that nobody needs its types. */
export interface RedisConnection {
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  duplicate(): RedisSubscriber;
}

/** A connection of the engine's own, for what Redis publishes. */
export interface RedisSubscriber {
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  on(event: 'message', listener: (channel: string, message: string) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  disconnect(): void;
}

/** How long a script may take to be answered, in ms. */
const ANSWER_LIMIT_MS = 5000;
/** What Redis says where it has surely not run a script. */
const NOT_RUN =
  /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|NOAUTH|NOPERM|OOM|MISCONF|BUSY|MOVED|CROSSSLOT|DENIED)\b/;

/** Runs scripts, by their digest where Redis knows them. */
export class ScriptRunner {
  readonly #connection: RedisConnection;
  readonly #clock: Clock;
  readonly #keys: readonly string[];
  readonly #digests = new Map<string, string>();

  constructor(connection: RedisConnection, clock: Clock, keys: readonly string[]) {
    this.#connection = connection;
    this.#clock = clock;
    this.#keys = keys;
  }

  /** @throws EngineUnavailableError */
  async run(script: string, args: readonly (string | number)[]): Promise<unknown> {
    const rest = [this.#keys.length, ...this.#keys, ...args];
    try {
      return await this.#answered(this.#connection.call('EVALSHA', this.#digest(script), ...rest));
    } catch (error) {
      if (!messageOf(error).startsWith('NOSCRIPT')) throw unavailable(error);
    }
    try {
      return await this.#answered(this.#connection.call('EVAL', script, ...rest));
    } catch (error) {
      throw unavailable(error);
    }
  }

  /** Waits for what has to be so before anything is asked. @throws EngineUnavailableError where that takes too long. */
  async until(ready: Promise<unknown>): Promise<void> {
    try {
      await this.#answered(ready);
    } catch (error) {
      const message = `Redis gave no connection to listen on: ${messageOf(error)}. Check that it is up and takes more clients.`;
      throw new EngineUnavailableError(message, 'definite', { cause: error });
    }
  }

  #digest(script: string): string {
    let digest = this.#digests.get(script);
    if (digest === undefined) {
      digest = createHash('sha1').update(script).digest('hex');
      this.#digests.set(script, digest);
    }
    return digest;
  }

  async #answered<T>(answer: Promise<T>): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = this.#clock.setTimer(
      ANSWER_LIMIT_MS,
      () => reject(new Error(`no answer within ${ANSWER_LIMIT_MS} ms`)),
      {
        keepProcess: false,
      },
    );
    try {
      return await Promise.race([answer, late]);
    } finally {
      timer.cancel();
      answer.catch(() => {});
    }
  }
}

function unavailable(error: unknown): EngineUnavailableError {
  if (error instanceof EngineUnavailableError) return error;
  const said = messageOf(error);
  const outcome = NOT_RUN.test(said) ? 'definite' : 'indefinite';
  return new EngineUnavailableError(
    `Redis did not do what was asked: ${said}. Check that it is up and can be written.`,
    outcome,
    {
      cause: error,
    },
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
