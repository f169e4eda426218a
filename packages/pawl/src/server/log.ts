import type { Clock } from '../clock.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** One thing that happened, for a structured log. Tokens of clients and ids of sessions are never in it. */
export interface LogEntry {
  readonly level: LogLevel;
  /** What happened, such as `connectionOpened`. */
  readonly event: string;
  /** Ms since the epoch. */
  readonly atMs: number;
  readonly [field: string]: unknown;
}

/** Writes log entries to wherever the server's owner wants them. */
export class Log {
  readonly #clock: Clock;
  readonly #write: (entry: LogEntry) => void;

  constructor(clock: Clock, write: (entry: LogEntry) => void = () => {}) {
    this.#clock = clock;
    this.#write = write;
  }

  note(level: LogLevel, event: string, fields: Readonly<Record<string, unknown>> = {}): void {
    try {
      this.#write({ level, event, atMs: this.#clock.wallMs(), ...fields });
    } catch {
      // A log that fails must not take the locks with it.
    }
  }

  /** A fault of the server itself. */
  fault(where: string, error: unknown): void {
    const stack = error instanceof Error ? error.stack : String(error);
    this.note('error', 'fault', { where, stack });
  }
}
