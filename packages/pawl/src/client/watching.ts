import type { Clock } from '../clock.ts';
import { InvalidArgumentError } from '../errors.ts';
import type { LockState } from '../node/service.ts';
import { checkDuration } from './options.ts';

export interface WatchSettings {
  /** Ends the watch. */
  readonly signal?: AbortSignal | undefined;
  /** How often to look, in ms; 200 unless set. What lasts shorter than that may go unseen. */
  readonly everyMs?: number | undefined;
}

/** Yields what `look` finds, at once and whenever it differs from the last time. */
export async function* watch(
  look: () => Promise<LockState>,
  clock: Clock,
  settings: WatchSettings,
): AsyncGenerator<LockState, void, void> {
  const { signal, everyMs = 200 } = settings;
  checkDuration('everyMs', everyMs, 1);
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new InvalidArgumentError('signal', 'an AbortSignal', signal);
  }
  let last: string | undefined;
  while (signal?.aborted !== true) {
    const state = await look();
    const seen = JSON.stringify(state, (_key, value) =>
      typeof value === 'bigint' ? value.toString() : value,
    );
    if (seen !== last) {
      last = seen;
      yield state;
    }
    await pause(clock, everyMs, signal);
  }
}

function pause(clock: Clock, delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      timer.cancel();
      signal?.removeEventListener('abort', wake);
      resolve();
    };
    const timer = clock.setTimer(delayMs, wake);
    signal?.addEventListener('abort', wake, { once: true });
    if (signal?.aborted === true) wake();
  });
}
