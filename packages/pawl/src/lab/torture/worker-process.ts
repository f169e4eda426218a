import { type ChildProcess, spawn } from 'node:child_process';
import { CuttableProxy } from './cuttable-proxy.ts';
import type { LockerSettings } from './locker.ts';
import type { WorkerLine, WorkerSettings } from './worker.ts';

/** So much of what a worker printed before it crashed, in characters. */
const LAST_WORDS = 1000;

export interface WorkerProcessOptions {
  /** The worker's program. */
  readonly file: string;
  readonly settings: Omit<WorkerSettings, 'locker'>;
  /** The servers' ports; the worker gets those of proxies before them. */
  readonly ports: readonly number[];
  readonly locker: (ports: readonly number[]) => LockerSettings;
  readonly hear: (line: WorkerLine, worker: WorkerProcess) => void;
  /** Told of an end that nobody asked for. */
  readonly crashed: (lastWords: string) => void;
}

/** A worker's process and its network. Where it ends, another takes its place. */
export class WorkerProcess {
  readonly #options: WorkerProcessOptions;
  readonly #proxies: readonly CuttableProxy[];
  #locker: LockerSettings | undefined;
  #child: ChildProcess | undefined;
  #over = false;
  /** It has read and not yet written, as far as it said. */
  #between = false;

  constructor(options: WorkerProcessOptions) {
    this.#options = options;
    this.#proxies = options.ports.map((port) => new CuttableProxy(port));
  }

  get between(): boolean {
    return this.#between;
  }

  async start(): Promise<void> {
    const ports = [];
    for (const proxy of this.#proxies) ports.push(await proxy.listen());
    this.#locker = this.#options.locker(ports);
    this.#spawn();
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal);
  }

  /** Kills it; the next one starts at once. */
  kill(): void {
    const child = this.#child;
    this.#spawn();
    child?.kill('SIGKILL');
  }

  /** Cuts its connections, and lets it make no others. */
  cut(): void {
    for (const proxy of this.#proxies) proxy.cut();
  }

  /** Lets it connect again. */
  mend(): void {
    for (const proxy of this.#proxies) proxy.mend();
  }

  /** Ends it for good; resolves once it is gone. */
  async end(): Promise<void> {
    this.#over = true;
    for (const proxy of this.#proxies) proxy.close();
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  }

  #spawn(): void {
    if (this.#over) return;
    const settings = { ...this.#options.settings, locker: this.#locker };
    const args = ['--no-warnings', this.#options.file, JSON.stringify(settings)];
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child = child;
    this.#between = false;
    let rest = '';
    let lastWords = '';
    child.stdout.on('data', (chunk) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#hear(JSON.parse(line), child);
    });
    child.stderr.on('data', (chunk) => {
      lastWords = (lastWords + chunk).slice(-LAST_WORDS);
    });
    child.stdin.on('error', () => {});
    child.once('exit', () => {
      if (this.#over || this.#child !== child) return;
      this.#options.crashed(lastWords);
      this.#spawn();
    });
  }

  #hear(line: WorkerLine, child: ChildProcess): void {
    if (child === this.#child) {
      if (line.kind === 'between') this.#between = true;
      if (line.kind === 'wrote') this.#between = false;
    }
    this.#options.hear(line, this);
  }
}
