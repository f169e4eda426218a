import { type Clock, sleep } from '../../clock.ts';
import { lockKey } from '../../core/names.ts';
import type { Engine } from '../../engines/engine.ts';

/** So long an engine may take to answer, in ms, and so long its answer is good for others who ask. */
const ANSWER_LIMIT_MS = 2000;
const GOOD_FOR_MS = 500;

/** Whether the server can serve: it is not about to stop, and its engine answers. */
export class Health {
  readonly #engine: Engine;
  readonly #clock: Clock;
  #stopping = false;
  #asking: Promise<string | undefined> | undefined;

  constructor(engine: Engine, clock: Clock) {
    this.#engine = engine;
    this.#clock = clock;
  }

  stopping(): void {
    this.#stopping = true;
  }

  /** @returns what is wrong, in words; `undefined` where nothing is. However many ask, the engine is asked twice a second at most. */
  async problem(): Promise<string | undefined> {
    if (this.#stopping) return 'stopping';
    if (this.#asking === undefined) {
      this.#asking = this.#ask();
      this.#clock.setTimer(
        GOOD_FOR_MS,
        () => {
          this.#asking = undefined;
        },
        { keepProcess: false },
      );
    }
    return this.#asking;
  }

  async #ask(): Promise<string | undefined> {
    try {
      const reading = this.#engine.read({ keys: [lockKey('readyz')], ranges: [] });
      const silence = sleep(this.#clock, ANSWER_LIMIT_MS, { keepProcess: false });
      return await Promise.race([
        reading.then(() => undefined),
        silence.then(() => `the engine has not answered within ${ANSWER_LIMIT_MS} ms`),
      ]);
    } catch (error) {
      return error instanceof Error ? error.message : 'the engine failed';
    }
  }
}
