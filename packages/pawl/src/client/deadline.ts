import type { Clock } from '../clock.ts';

/** A moment on both clocks of a process. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function now(clock: Clock): Moment {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

/**
 * The time since `then`, in ms: the larger of what the monotonic and the wall clock say (C1). The monotonic clock
 * stands still while the machine sleeps, the wall clock may be set back; the larger of both errs towards "too late".
 */
export function elapsedMs(clock: Clock, then: Moment): number {
  return Math.max(clock.monotonicMs() - then.monotonicMs, clock.wallMs() - then.wallMs);
}
