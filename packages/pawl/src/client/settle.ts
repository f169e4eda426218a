import { randomInt } from 'node:crypto';
import { type Clock, sleep } from '../clock.ts';
import { PawlError } from '../errors.ts';

/**
 * Waits between attempts: doubled from the first to the longest, in ms, and each lengthened by up to a half, so that those whom
 * one outage has hit at once do not all come back at once.
 */
const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 1000;

export interface SettleOptions {
  readonly clock: Clock;
  /** Whether there is any point in trying again after `error`. */
  readonly goOn: (error: PawlError) => boolean;
}

/**
 * Repeats `attempt` until it is answered, however often the engine cannot be reached (C5): requests are named by their
 * ids, so a repetition is the same request.
 *
 * @throws the last error once `goOn` says no, and any error that repeating cannot help.
 */
export function settle<T>(attempt: () => Promise<T>, options: SettleOptions): Promise<T> {
  // Most attempts need no second one, so nothing is made ready for it.
  return attempt().catch((error: unknown) => settleAfter(error, attempt, options));
}

async function settleAfter<T>(
  firstError: unknown,
  attempt: () => Promise<T>,
  { clock, goOn }: SettleOptions,
): Promise<T> {
  let error = firstError;
  let pauseMs = FIRST_PAUSE_MS;
  for (;;) {
    if (!(error instanceof PawlError && error.retryable && goOn(error))) throw error;
    await sleep(clock, randomInt(pauseMs, Math.ceil(pauseMs * 1.5) + 1), { keepProcess: false });
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    try {
      return await attempt();
    } catch (next) {
      error = next;
    }
  }
}

/** What `work` comes to, or `undefined` if that takes longer than `limitMs`; then it goes on unobserved. */
export function within<T>(
  clock: Clock,
  limitMs: number,
  work: Promise<T>,
): Promise<{ value: T } | undefined> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(limitMs, () => resolve(undefined));
    const onValue = (value: T) => {
      timer.cancel();
      resolve({ value });
    };
    const onError = (error: unknown) => {
      timer.cancel();
      reject(error);
    };
    work.then(onValue, onError);
  });
}
