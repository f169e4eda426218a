import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { sleep, systemClock } from '../clock.ts';
import { EXIT } from './exit-codes.ts';

/** How often to look whether a group has ended, in ms. */
const LOOK_EVERY_MS = 10;
/** So long the kernel may take to clear away what SIGKILL has ended, in ms; a zombie that nobody reaps stays for ever. */
const CLEARING_MS = 250;

/** A command and whatever it starts, in a process group of its own, without a shell. */
export class ProcessGroup {
  /** The exit code of the command: its own, 128 + n if signal n ended it, 126 or 127 if it could not be started. */
  readonly exited: Promise<number>;
  readonly #pid: number | undefined;
  #killAtMs = Number.POSITIVE_INFINITY;
  #ending: Promise<void> | undefined;

  /** @param environment set over what this process inherited, so that an outer lock's token never shines through. */
  constructor(command: readonly string[], environment: Readonly<Record<string, string>>) {
    const [file = '', ...args] = command;
    const { promise, resolve } = Promise.withResolvers<number>();
    this.exited = promise;
    try {
      const child = spawn(file, args, {
        stdio: 'inherit',
        detached: true,
        env: { ...process.env, ...environment },
      });
      this.#pid = child.pid;
      child.once('error', (error) => resolve(startFailed(file, error)));
      child.once('exit', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
    } catch (error) {
      // Some failures of the start are thrown, others are told as an event.
      resolve(startFailed(file, error));
    }
  }

  /** Sends a signal to the whole group. @returns false where nothing of it is left. */
  signal(signal: NodeJS.Signals | 0): boolean {
    if (this.#pid === undefined) return false;
    try {
      process.kill(-this.#pid, signal);
      return true;
    } catch (error) {
      // Whatever may not be signalled is still there.
      return codeOf(error) !== 'ESRCH';
    }
  }

  /**
   * Ends the whole group: SIGTERM, and after `graceMs` SIGKILL to what is left. Called again, it can only shorten the grace.
   * Resolves once nothing of the group is left.
   */
  end(graceMs: number): Promise<void> {
    this.#killAtMs = Math.min(this.#killAtMs, systemClock.monotonicMs() + graceMs);
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    if (!this.signal('SIGTERM')) return;
    // A stopped process takes SIGTERM only once it goes on.
    this.signal('SIGCONT');
    if (await this.#goneBy(() => this.#killAtMs)) return;
    this.signal('SIGKILL');
    const clearedAtMs = systemClock.monotonicMs() + CLEARING_MS;
    await this.#goneBy(() => clearedAtMs);
  }

  async #goneBy(limitMs: () => number): Promise<boolean> {
    while (this.signal(0)) {
      const leftMs = limitMs() - systemClock.monotonicMs();
      if (leftMs <= 0) return false;
      await sleep(systemClock, Math.min(LOOK_EVERY_MS, leftMs));
    }
    return true;
  }
}

/** As a shell does: 127 where there is no such command, 126 where there is one that cannot be executed. */
function startFailed(file: string, error: unknown): number {
  const code = codeOf(error);
  const notFound = code === 'ENOENT';
  const what = notFound ? 'was not found' : `cannot be executed (${code ?? error})`;
  process.stderr.write(`pawl: The command "${file}" ${what}.\n`);
  return notFound ? EXIT.notFound : EXIT.notExecutable;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
