import { randomUUID } from 'node:crypto';
import { checkResource } from '../bearer.ts';
import { FenceUsageError, OnceRunningError, OnceUnfinishedError, OnceUnrecordedError } from '../errors.ts';
import type { OnceStore } from './store.ts';

export interface OnceOptions {
  /**
   * Nobody can make an effect elsewhere and its record here one step. After a crash between them the record says "begun", and one of
   * two wrongs has to be chosen:
   *
   * - `repeat`: do it again. At least once; the effect may happen twice.
   * - `refuse`: throw OnceUnfinishedError, for an operator to find out. At most once; the effect may not happen at all.
   */
  readonly onCrash: 'repeat' | 'refuse';
  /** How long a run takes at most, in ms; what takes longer counts as crashed. 60,000 unless set. */
  readonly runMs?: number | undefined;
  /** How long to remember that it was done, in ms; for ever unless set. Must be longer than anybody may ask again. */
  readonly keepMs?: number | undefined;
  /** Whether this error of the effect means that it surely did not happen, so that it may be done again. Asked only with `refuse`. */
  readonly didNothing?: ((error: unknown) => boolean) | undefined;
}

/** What an effect is told about its run. */
export interface OnceRun {
  /** The key, to hand on to whoever knows keys of this kind, such as in the header `Idempotency-Key`. */
  readonly key: string;
  /** Whether another run began before it, and may have done it. Only with `onCrash: 'repeat'`. */
  readonly repeat: boolean;
}

/**
 * Does something once that no fence can protect: an e-mail, a payment at a third party, a message to a queue. Safe against two at
 * once; what it does about crashes is the caller's choice, {@link OnceOptions.onCrash}.
 *
 * @param key names the effect, not the attempt: derive it from what is to be done ("invoice 42, reminder 2"), never from the time or at random.
 * @param effect does it. What it returns is recorded as JSON, and every call gets it from there, the first too.
 * @throws OnceRunningError while another does it; OnceUnfinishedError with `refuse`; OnceUnrecordedError where it was done and the store
 *   failed; FenceUsageError; the errors of the effect as they are: then with `repeat` the next call does it again, with `refuse` no call
 *   does, unless `didNothing`.
 */
export async function once<T>(
  store: OnceStore,
  key: string,
  effect: (run: OnceRun) => T | Promise<T>,
  options: OnceOptions,
): Promise<T> {
  const { onCrash, runMs = 60_000, keepMs, didNothing } = checkOptions(key, options);
  const run = randomUUID();
  const found = await store.begin(key, run, { runMs, takeOver: onCrash === 'repeat' });
  switch (found.state) {
    case 'done':
      return parse(found.value);
    case 'running':
      throw new OnceRunningError(key);
    case 'unfinished':
      throw new OnceUnfinishedError(key, found.run);
    case 'begun':
      break;
  }

  let value: T;
  try {
    value = await effect({ key, repeat: found.repeat });
  } catch (error) {
    const again = onCrash === 'repeat' || saysSo(didNothing, error);
    // If the store fails too, the record says "begun", which is true; the effect's error is the one to tell.
    await attempt(() => (again ? store.forget(key, run) : store.giveUp(key, run)));
    throw error;
  }
  const { text, problem } = toJson(value);
  let recorded: string;
  try {
    recorded = await store.finish(key, text, keepMs);
  } catch (error) {
    throw new OnceUnrecordedError(key, value, error);
  }
  if (problem !== undefined) {
    throw new FenceUsageError(
      key,
      `"${key}" was done, and recorded without a value, since that is no JSON: ${problem}.`,
    );
  }
  return parse(recorded);
}

/** Where it throws, nobody knows: the effect's error is the one to tell. */
function saysSo(didNothing: OnceOptions['didNothing'], error: unknown): boolean {
  try {
    return didNothing?.(error) === true;
  } catch {
    return false;
  }
}

/** `undefined` is no JSON, but what most effects return. */
function toJson(value: unknown): { text: string; problem?: string } {
  try {
    return { text: JSON.stringify(value) ?? '' };
  } catch (error) {
    return { text: '', problem: error instanceof Error ? error.message : String(error) };
  }
}

function parse<T>(text: string): T {
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

async function attempt(act: () => void | Promise<void>): Promise<void> {
  try {
    await act();
  } catch {
    // Said above.
  }
}

function checkOptions(key: string, options: OnceOptions): OnceOptions {
  checkResource(key);
  const isMs = (value: unknown) => value === undefined || (Number.isSafeInteger(value) && Number(value) > 0);
  if (options?.onCrash !== 'repeat' && options?.onCrash !== 'refuse') {
    throw new FenceUsageError(key, 'onCrash must be "repeat" (at least once) or "refuse" (at most once).');
  }
  if (isMs(options.runMs) && isMs(options.keepMs)) return options;
  throw new FenceUsageError(key, 'runMs and keepMs must be whole numbers of ms from 1.');
}
