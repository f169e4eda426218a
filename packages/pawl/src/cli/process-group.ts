import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { sleep, systemClock } from '../clock.ts';
import { EXIT } from './exit-codes.ts';

/** How often to look whether a group has ended, in ms. */
const LOOK_EVERY_MS = 10;

/** A command and whatever it starts, in a process group of its own, without a shell. */
export class ProcessGroup {
  /** The exit code of the command: its own, 128 + n if signal n ended it, 126 or 127 if it could not be started. */
  readonly exited: Promise<number>;
  readonly #child: ChildProcess;

  /** @param environment set over what this process inherited, so that an outer lock's token never shines through. */
  constructor(command: readonly string[], environment: Readonly<Record<string, string>>) {
    const [file = '', ...args] = command;
    this.#child = spawn(file, args, {
      stdio: 'inherit',
      detached: true,
      env: { ...process.env, ...environment },
    });
    this.exited = new Promise((resolve) => {
      this.#child.once('error', (error) => resolve(startFailed(file, error)));
      this.#child.once('exit', (code, signal) =>
        resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)),
      );
    });
  }

  /** Sends a signal to the whole group. @returns false where nothing of it is left. */
  signal(signal: NodeJS.Signals | 0): boolean {
    const { pid } = this.#child;
    if (pid === undefined) return false;
    try {
      process.kill(-pid, signal);
      return true;
    } catch {
      return false;
    }
  }

  /** Ends the whole group: SIGTERM, and after `graceMs` SIGKILL. */
  async end(graceMs: number): Promise<void> {
    if (!this.signal('SIGTERM')) return;
    // A stopped process takes SIGTERM only once it goes on.
    this.signal('SIGCONT');
    const startedAt = systemClock.monotonicMs();
    while (systemClock.monotonicMs() - startedAt < graceMs) {
      await sleep(systemClock, LOOK_EVERY_MS);
      if (!this.signal(0)) return;
    }
    this.signal('SIGKILL');
  }
}

function startFailed(file: string, error: Error): number {
  const notFound = 'code' in error && error.code === 'ENOENT';
  process.stderr.write(`pawl: ${notFound ? `the command "${file}" was not found` : error.message}\n`);
  return notFound ? EXIT.notFound : EXIT.notExecutable;
}
