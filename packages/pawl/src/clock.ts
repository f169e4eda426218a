import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';

/** A timer that was set; cancelling one that fired or was cancelled does nothing. */
export interface Timer {
  cancel(): void;
}

/**
 * The only way in which Pawl reads time or waits. Everything takes a clock as an argument, so that tests run in
 * simulated time. A test forbids any other use of time in the sources.
 */
export interface Clock {
  /** Milliseconds of a clock that never steps and stands still while the machine sleeps. */
  monotonicMs(): number;
  /** Milliseconds since the Unix epoch; may step in either direction. */
  wallMs(): number;
  /** Milliseconds since the machine started, sleep included; the same for all processes of the machine. */
  sinceBootMs(): number;
  /** Names the current boot of the machine: two values of `sinceBootMs` compare only within one boot. */
  bootId(): string;
  /**
   * Calls `fire` once after `delayMs` (0 or more; any length, also beyond the 24.8 days of `setTimeout`).
   * With `keepProcess: false` the timer does not keep the process running.
   */
  setTimer(delayMs: number, fire: () => void, options?: { keepProcess?: boolean }): Timer;
}

/** What `setTimeout` takes at most; longer delays are cut into pieces. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * The uptime is a file to read, so the kernel is asked this often, in ms; in between the monotonic clock counts on. A sleep of the
 * machine is noticed that much later.
 */
const ASK_EVERY_MS = 50;

/** The clock of this machine. */
export class SystemClock implements Clock {
  #bootId: string | undefined;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #bootOffsetMs = Number.NEGATIVE_INFINITY;

  monotonicMs(): number {
    return performance.now();
  }

  wallMs(): number {
    return Date.now();
  }

  sinceBootMs(): number {
    const monotonicMs = performance.now();
    if (monotonicMs - this.#askedAtMs >= ASK_EVERY_MS) {
      this.#askedAtMs = monotonicMs;
      // The kernel rounds its uptime down to 10 ms, so the largest difference seen is the most exact; sleep only adds to it.
      this.#bootOffsetMs = Math.max(this.#bootOffsetMs, uptime() * 1000 - monotonicMs);
    }
    return monotonicMs + this.#bootOffsetMs;
  }

  bootId(): string {
    this.#bootId ??= readBootId();
    return this.#bootId;
  }

  setTimer(delayMs: number, fire: () => void, options: { keepProcess?: boolean } = {}): Timer {
    let leftMs = delayMs;
    let handle: NodeJS.Timeout;
    const arm = () => {
      const pieceMs = Math.min(leftMs, LONGEST_TIMEOUT_MS);
      leftMs -= pieceMs;
      handle = setTimeout(() => (leftMs > 0 ? arm() : fire()), pieceMs);
      if (options.keepProcess === false) handle.unref();
    };
    arm();
    return { cancel: () => clearTimeout(handle) };
  }
}

/** The one system clock. */
export const systemClock: Clock = new SystemClock();

/** Resolves after `delayMs` of `clock`. Keeps the process running unless told otherwise. */
export function sleep(clock: Clock, delayMs: number, options?: { keepProcess?: boolean }): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(delayMs, resolve, options);
  });
}

/** Resolves once the event loop has turned: what had come in by then was heard. It takes no time, so it needs no clock. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    // Without the kernel's id the boot time, to the minute, tells one boot from the next.
    return `boot-${Math.round((Date.now() - uptime() * 1000) / 60_000)}`;
  }
}
