import type { Clock } from '../../clock.ts';

/** What two clocks may drift apart during a TTL, as Redlock allows for it: a hundredth, and 2 ms for rounded expiry times. */
export function driftMs(ttlMs: number): number {
  return ttlMs * 0.01 + 2;
}

/**
 * How long a lock can be relied on: its TTL less the allowance for drift, from before the request that set it was sent, on the
 * larger of what the monotonic and the wall clock say (C1).
 */
export class Validity {
  readonly #clock: Clock;
  readonly #sinceMonotonicMs: number;
  readonly #sinceWallMs: number;
  readonly #lastsMs: number;

  /** Begins now: make it before the request is sent. */
  constructor(clock: Clock, ttlMs: number) {
    this.#clock = clock;
    this.#sinceMonotonicMs = clock.monotonicMs();
    this.#sinceWallMs = clock.wallMs();
    this.#lastsMs = ttlMs - driftMs(ttlMs);
  }

  /** 0 once it is over. */
  get remainingMs(): number {
    const elapsedMs = Math.max(
      this.#clock.monotonicMs() - this.#sinceMonotonicMs,
      this.#clock.wallMs() - this.#sinceWallMs,
    );
    return Math.max(0, this.#lastsMs - elapsedMs);
  }
}
