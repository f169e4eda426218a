import type { Clock, Timer } from '../../clock.ts';

/** Does something again and again. Does not keep the process running. */
export class Ticker {
  readonly #clock: Clock;
  readonly #periodMs: number;
  readonly #tick: () => void;
  #timer: Timer | undefined;

  constructor(clock: Clock, periodMs: number, tick: () => void) {
    this.#clock = clock;
    this.#periodMs = periodMs;
    this.#tick = tick;
  }

  /** Starts it, unless it runs already. The first tick comes after one period. */
  start(): void {
    this.#timer ??= this.#clock.setTimer(
      this.#periodMs,
      () => {
        this.#timer = undefined;
        this.start();
        this.#tick();
      },
      { keepProcess: false },
    );
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
