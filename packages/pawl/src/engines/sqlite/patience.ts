import { randomInt } from 'node:crypto';
import { type Clock, sleep } from '../../clock.ts';
import { EngineUnavailableError } from '../../errors.ts';
import { isBusy } from './failures.ts';

/** The longest pause before the next attempt: a random one, so that no process is always too late. */
const MAX_PAUSE_MS = 10;

/**
 * Waits for the lock of a database that other processes write too. SQLite's own busy handler would wait as well, but
 * blocks the event loop while it does.
 */
export class Patience {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #where: string;

  constructor(clock: Clock, timeoutMs: number, where: string) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#where = where;
  }

  /**
   * Runs `attempt`, which must undo whatever it did before it throws, until it finds the database unlocked.
   *
   * @throws {EngineUnavailableError} (definite) when that took longer than the timeout; else what `attempt` throws.
   */
  async untilFree<T>(attempt: () => T): Promise<T> {
    const startMs = this.#clock.monotonicMs();
    for (;;) {
      try {
        return attempt();
      } catch (error) {
        if (!isBusy(error)) throw error;
        if (this.#clock.monotonicMs() - startMs >= this.#timeoutMs) {
          throw new EngineUnavailableError(
            `${this.#where} was locked by another process for ${this.#timeoutMs} ms. Find out who keeps a transaction open, or raise busyTimeoutMs.`,
            'definite',
            { cause: error },
          );
        }
      }
      await sleep(this.#clock, randomInt(1, MAX_PAUSE_MS + 1));
    }
  }
}
