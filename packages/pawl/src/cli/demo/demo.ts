import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../clock.ts';
import { EXIT } from '../exit-codes.ts';
import type { Report, Task } from './story.ts';

const TTL_MS = 1000;
const START = 100;
const A_ADDS = 200;
const B_ADDS = 50;

/** `pawl demo`: the same two processes, the same pause, with the fence and without. */
export async function demo(): Promise<number> {
  say(
    `An account of ${START}. Process A adds ${A_ADDS}, process B adds ${B_ADDS}, each under a lock with a lease of ${TTL_MS} ms.`,
    'A is stopped for longer than its lease, after it has looked at the lease and before it writes.',
  );
  const right = START + A_ADDS + B_ADDS;
  const fenced = await tellStory(true);
  const unfenced = await tellStory(false);
  const asTold =
    fenced.balance === right && fenced.refused && unfenced.balance === START + A_ADDS && !unfenced.refused;
  if (!asTold) {
    say('', `This did not go as it should: ${fenced.balance} with the fence, ${unfenced.balance} without.`);
    return EXIT.failed;
  }
  say(
    '',
    `With the fence the account ends at ${right}: both were added.`,
    `Without it the account ends at ${unfenced.balance}: B's ${B_ADDS} are gone.`,
    'The lock did the same both times. Only the resource can refuse the write of a process that comes too late.',
  );
  return EXIT.ok;
}

/** @returns what the account ends with, and whether a write was refused. */
async function tellStory(fenced: boolean): Promise<{ balance: number; refused: boolean }> {
  say('', fenced ? 'With the fence' : 'Without the fence');
  const folder = mkdtempSync(join(tmpdir(), 'pawl-demo-'));
  const workers: Worker[] = [];
  const cleanUp = () => {
    for (const worker of workers) worker.signal('SIGKILL');
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
  const forget = onInterrupt(cleanUp);
  try {
    const ledger = join(folder, 'ledger.db');
    const db = new DatabaseSync(ledger);
    db.exec(`CREATE TABLE account (balance INTEGER NOT NULL); INSERT INTO account VALUES (${START})`);
    const gate = join(folder, 'gate');
    const shared = { locks: join(folder, 'locks.db'), ledger, ttlMs: TTL_MS, fenced };
    const startedAt = systemClock.monotonicMs();
    const tell = (who: string, what: string) => {
      const ms = Math.round(systemClock.monotonicMs() - startedAt);
      say(`  ${String(ms).padStart(5)} ms  ${who}  ${what}`);
    };

    const a = new Worker('A', { ...shared, adds: A_ADDS, gate }, tell);
    workers.push(a);
    await a.until('checked');
    a.signal('SIGSTOP');
    tell('A', 'is stopped (SIGSTOP)');
    const b = new Worker('B', { ...shared, adds: B_ADDS }, tell);
    workers.push(b);
    await b.ended;
    writeFileSync(gate, '');
    tell('A', 'goes on (SIGCONT), and does not know that its lease is over');
    a.signal('SIGCONT');
    await a.ended;
    const balance = Number(db.prepare('SELECT balance FROM account').get()?.balance);
    tell(' ', `the account is at ${balance}`);
    db.close();
    return { balance, refused: a.told.has('refused') };
  } finally {
    forget();
    cleanUp();
  }
}

/** Ends with the signal's exit code, but leaves no stopped process and no files behind. @returns a function that undoes it. */
function onInterrupt(cleanUp: () => void): () => void {
  const undo = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((signal) => {
    const end = () => {
      cleanUp();
      process.exit(128 + constants.signals[signal]);
    };
    process.once(signal, end);
    return () => process.off(signal, end);
  });
  return () => {
    for (const each of undo) each();
  };
}

/** One of the two processes. */
class Worker {
  readonly ended: Promise<void>;
  /** All that it has told so far. */
  readonly told = new Set<Report['kind']>();
  readonly #child: ChildProcess;
  readonly #waits: { kind: Report['kind']; resolve(): void }[] = [];

  constructor(name: string, task: Task, tell: (who: string, what: string) => void) {
    const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const file = fileURLToPath(new URL(`./worker.${ending}`, import.meta.url));
    this.#child = fork(file, [JSON.stringify(task)], {
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    this.#child.on('message', (report: Report) => {
      this.told.add(report.kind);
      tell(name, textOf(report));
      for (const wait of this.#waits) if (wait.kind === report.kind) wait.resolve();
    });
    // Only once the channel is closed has everything been told.
    this.ended = Promise.all([once(this.#child, 'exit'), once(this.#child, 'disconnect')]).then(() => {});
  }

  /** Resolves when the worker has told that, or has ended. */
  until(kind: Report['kind']): Promise<void> {
    const told = new Promise<void>((resolve) => this.#waits.push({ kind, resolve }));
    return Promise.race([told, this.ended]);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}

function textOf(report: Report): string {
  switch (report.kind) {
    case 'read':
      return `holds the lock with token ${report.token} and reads ${report.balance}`;
    case 'checked':
      return 'has checked that it holds the lock, and is about to write';
    case 'wrote':
      return `writes ${report.balance} with token ${report.token}`;
    case 'lost':
      return `is told that its lease with token ${report.token} is over: after the write`;
    case 'refused':
      return `is refused: token ${report.token} is lower than ${report.highest}; it acquires the lock again`;
  }
}

function say(...lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}
