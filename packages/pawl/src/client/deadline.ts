import type { Clock } from '../clock.ts';

/** A moment on all clocks of a process. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
  readonly sinceBootMs: number;
}

export function now(clock: Clock): Moment {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs(), sinceBootMs: clock.sinceBootMs() };
}

/** How much slower this clock may run than the engine's: a clock that is disciplined strays by 500 ppm at most, and so may the other. */
const DRIFT = 0.001;

/**
 * The most time that may have passed since `then`, in ms: the largest of what the clocks say (C1), and a thousandth for drift. The
 * monotonic clock stands still while the machine sleeps, the wall clock may be set back, and even both within one lease; the time since
 * boot suffers from neither, but is known to 10 ms only. The largest errs towards "too late".
 */
export function elapsedMs(clock: Clock, then: Moment): number {
  const counted = Math.max(
    clock.monotonicMs() - then.monotonicMs,
    clock.wallMs() - then.wallMs,
    clock.sinceBootMs() - then.sinceBootMs,
  );
  return counted * (1 + DRIFT);
}
