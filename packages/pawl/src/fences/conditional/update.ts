import { ContentionError, FenceUsageError } from '../errors.ts';

/** Something that tells its version when it is read, and can be written if it is still at that version, in one atomic step. */
export interface Versioned<Value, Change = Value, Version = unknown> {
  /** Its name, for messages. */
  readonly name?: string;
  read(): Promise<{ readonly value: Value; readonly version: Version }>;
  /** @returns whether it was written: `false` only where the version is another now, so that nothing was. */
  writeIf(change: Change, version: Version): Promise<boolean>;
}

export interface UpdateOptions {
  /** How often to try at most; 10 unless set. */
  readonly attempts?: number | undefined;
  /**
   * Waits between attempts: the `setTimeout` of Node's timers that returns a promise fits. Without it the next attempt follows at once, which is right
   * for few writers: of those that meet, one always succeeds.
   */
  readonly wait?: ((delayMs: number) => Promise<unknown>) | undefined;
  /** The longest first wait, in ms, doubled with every attempt; the wait is a random part of it. 10 unless set. */
  readonly backoffMs?: number | undefined;
  /** From 0 to below 1; `Math.random` unless set. */
  readonly random?: (() => number) | undefined;
  /** Ends it between attempts. */
  readonly signal?: AbortSignal | undefined;
}

export interface Updated<Value, Change> {
  /** What was read before the write that succeeded. */
  readonly value: Value;
  /** What was written; `undefined` where `decide` wanted nothing. */
  readonly change: Change | undefined;
  readonly attempts: number;
}

/** The longest wait between two attempts, in ms. */
const LONGEST_WAIT_MS = 5000;

/**
 * Read, decide, write if unchanged; again from the start where another came between. No lock, nothing that expires, and no holder that
 * can be late: enough wherever all of a change is one conditional write.
 *
 * @param decide gets what was read and returns what to write, or `undefined` for nothing. It may be called several times, so it must do
 *   nothing else.
 * @throws ContentionError where others came between in every attempt; what `read`, `decide` and `writeIf` throw as it is, without
 *   another attempt: a write whose answer was lost may have happened.
 */
export async function updateIfUnchanged<Value, Change, Version>(
  versioned: Versioned<Value, Change, Version>,
  decide: (value: Value) => Change | undefined | Promise<Change | undefined>,
  options: UpdateOptions = {},
): Promise<Updated<Value, Change>> {
  const { attempts = 10, wait, backoffMs = 10, random = Math.random, signal } = options;
  const name = versioned.name ?? 'the resource';
  if (!Number.isSafeInteger(attempts) || attempts < 1 || !(backoffMs >= 0)) {
    throw new FenceUsageError(
      name,
      'attempts must be a whole number from 1, and backoffMs a number of ms from 0.',
    );
  }
  for (let attempt = 1; ; attempt += 1) {
    signal?.throwIfAborted();
    const { value, version } = await versioned.read();
    const change = await decide(value);
    if (change === undefined) return { value, change, attempts: attempt };
    if (await versioned.writeIf(change, version)) return { value, change, attempts: attempt };
    if (attempt === attempts) throw new ContentionError(name, attempts);
    await wait?.(random() * Math.min(backoffMs * 2 ** (attempt - 1), LONGEST_WAIT_MS));
  }
}
