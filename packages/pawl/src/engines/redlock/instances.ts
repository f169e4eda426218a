import type { Clock } from '../../clock.ts';
import { EngineUnavailableError, type ErrorOutcome } from '../../errors.ts';

/** What is called on a connection: ioredis' `Redis` has it. Typed by structure, so that nobody needs its types. */
export interface RedlockClient {
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
}

/** What became of one question to all instances. */
export interface Votes<T> {
  /** What those said that agreed. */
  readonly yes: readonly T[];
  /** How many refused. */
  readonly no: number;
  /** Why the others are not known: errors, and no answer in time. */
  readonly failures: readonly unknown[];
}

/** The keys of one lock, and a script with its arguments. */
export interface Question<T> {
  readonly script: string;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
  /** Reads an answer; `undefined` is a refusal. What it throws counts as a failure of that instance. */
  readonly read: (answer: unknown) => T | undefined;
  /** Waits for every instance instead of only until the outcome is certain. */
  readonly all?: boolean;
}

/** The independent Redis, asked all at once. */
export class Instances {
  readonly count: number;
  /** More than half: any two quorums share an instance. */
  readonly quorum: number;
  readonly #clients: readonly RedlockClient[];
  readonly #clock: Clock;
  readonly #timeoutMs: number;

  /** @param timeoutMs how long each may take to answer. */
  constructor(clients: readonly RedlockClient[], clock: Clock, timeoutMs: number) {
    this.count = clients.length;
    this.quorum = Math.floor(clients.length / 2) + 1;
    this.#clients = clients;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** Never rejects. Answers that come after it has resolved change nothing any more. */
  ask<T>({ script, keys, args, read, all = false }: Question<T>): Promise<Votes<T>> {
    return new Promise((resolve) => {
      const yes: T[] = [];
      const failures: unknown[] = [];
      let no = 0;
      let over = false;
      const answered = () => yes.length + no + failures.length;
      const finish = () => {
        over = true;
        timer.cancel();
        resolve({ yes, no, failures });
      };
      const count = (add: () => void) => {
        if (over) return;
        add();
        const certain = !all && (this.agreed(yes.length) || this.refused(yes.length, no));
        if (certain || answered() === this.count) finish();
      };
      const timer = this.#clock.setTimer(this.#timeoutMs, () => {
        const late = new Error(`no answer within ${this.#timeoutMs} ms`);
        while (answered() < this.count) failures.push(late);
        finish();
      });
      for (const client of this.#clients) {
        this.#call(client, script, keys, args)
          .then(read)
          .then(
            (answer) =>
              count(() => {
                if (answer === undefined) no += 1;
                else yes.push(answer);
              }),
            (error) => count(() => failures.push(error)),
          );
      }
    });
  }

  /** Whether so many are a quorum. */
  agreed(yes: number): boolean {
    return yes >= this.quorum;
  }

  /** Whether a quorum answered, and so many refused that those that did not answer could not make up for it. */
  refused(yes: number, no: number): boolean {
    return yes + no >= this.quorum && no > this.count - this.quorum;
  }

  unavailable({ yes, no, failures }: Votes<unknown>, outcome: ErrorOutcome): EngineUnavailableError {
    const reasons = new Set(
      failures.map((e) => (e instanceof Error && e.message !== '' ? e.message : String(e))),
    );
    return new EngineUnavailableError(
      `A quorum is ${this.quorum} of ${this.count} Redis, but ${yes.length} agreed, ${no} refused and ${failures.length} failed (${[...reasons].join('; ')}). ` +
        'Check that they are up and can be written.',
      outcome,
      { cause: new AggregateError(failures) },
    );
  }

  // Whole scripts, not digests: to send one again because an instance does not know it would let it come after what was sent
  // later, and a take after its own release stays behind.
  async #call(
    client: RedlockClient,
    script: string,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    return client.call('EVAL', script, keys.length, ...keys, ...args);
  }
}
