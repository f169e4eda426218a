import { constants } from 'node:os';
import { LeaseLostError } from '../errors.ts';
import { EXIT } from './exit-codes.ts';
import type { Parsed } from './options.ts';
import { ProcessGroup } from './process-group.ts';
import { withPawl } from './store.ts';
import { printable } from './text.ts';

/** Passed on to the command; while still waiting for the lock, the first four end the wait. */
const SIGNALS = [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR1',
  'SIGUSR2',
  'SIGTSTP',
  'SIGCONT',
  'SIGWINCH',
] as const;
const ENDING = new Set<NodeJS.Signals>(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']);
/** Between SIGTERM and SIGKILL, in ms, where the lock was taken away for good, or the command left others behind. */
const SHORT_GRACE_MS = 250;
/** What of the command's text others get to see in `pawl inspect`, in UTF-16 units. */
const SHOWN_COMMAND = 200;

/** `pawl run`: like flock(1), but with a lease and a token. */
export async function runUnderLock({ options, positionals, command }: Parsed<'run'>): Promise<number> {
  const [lock = ''] = positionals;
  const { ttl: ttlMs, wait: waitMs, shared } = options;
  const signals = new SignalRelay();
  try {
    return await withPawl(options, async (pawl) => {
      const mode = shared ? 'shared' : 'exclusive';
      const owner = { command: printable(command.join(' ')).slice(0, SHOWN_COMMAND).toWellFormed() };
      const lease = await pawl.acquire(lock, { ttlMs, waitMs, mode, owner, signal: signals.whileWaiting });
      lease.signal.throwIfAborted();
      const group = new ProcessGroup(command, { PAWL_LOCK: lock, PAWL_TOKEN: lease.token.toString() });
      signals.relayTo(group);
      lease.signal.addEventListener('abort', () => {
        void group.end(lease.held ? lease.remainingMs / 2 : SHORT_GRACE_MS);
      });
      const exitCode = await group.exited;
      // Nothing of the group may outlive the lease.
      await group.end(SHORT_GRACE_MS);
      return releaseAfter(lease, exitCode);
    });
  } catch (error) {
    // The wait was ended by a signal, as it would have ended the command.
    if (signals.received !== undefined) return 128 + constants.signals[signals.received];
    throw error;
  } finally {
    signals.close();
  }
}

interface Releasable {
  readonly signal: AbortSignal;
  readonly held: boolean;
  release(): Promise<void>;
}

async function releaseAfter(lease: Releasable, exitCode: number): Promise<number> {
  const { reason } = lease.signal;
  if (lease.held) {
    await lease.release().catch((error: unknown) => {
      if (error instanceof LeaseLostError && !lease.signal.aborted) throw error;
      // The session ends with this process, and with it what could not be released.
    });
  }
  if (!lease.signal.aborted) return exitCode;
  process.stderr.write(`pawl: ${reason instanceof Error ? reason.message : reason} The command was ended.\n`);
  return EXIT.lost;
}

/** Takes signals in the place of the command: before it runs they end the wait, afterwards they are passed on. */
class SignalRelay {
  /** The signal that ended the wait, if one did. */
  received: NodeJS.Signals | undefined;
  readonly #waiting = new AbortController();
  readonly #handlers = new Map<NodeJS.Signals, () => void>();
  #group: ProcessGroup | undefined;

  constructor() {
    for (const signal of SIGNALS) {
      const handle = () => this.#take(signal);
      this.#handlers.set(signal, handle);
      process.on(signal, handle);
    }
  }

  get whileWaiting(): AbortSignal {
    return this.#waiting.signal;
  }

  relayTo(group: ProcessGroup): void {
    this.#group = group;
    if (this.received !== undefined) group.signal(this.received);
    this.received = undefined;
  }

  close(): void {
    for (const [signal, handle] of this.#handlers) process.off(signal, handle);
  }

  #take(signal: NodeJS.Signals): void {
    if (this.#group !== undefined) this.#group.signal(signal);
    else if (ENDING.has(signal)) {
      this.received = signal;
      this.#waiting.abort(new Error(`received ${signal}`));
    }
  }
}
