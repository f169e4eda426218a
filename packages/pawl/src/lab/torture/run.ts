import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Count, countUpdates, createResource } from './count.ts';
import { nowMs } from './machine-time.ts';
import type { Target } from './targets.ts';
import type { WorkerLine } from './worker.ts';
import { WorkerProcess } from './worker-process.ts';

const WORKERS = 3;
/** How long the workers may take until all have connected, in ms. */
const READY_LIMIT_MS = 60_000;
const LOOK_EVERY_MS = 20;

/** What befell a run. */
export interface Injuries {
  /** Holders that were stopped for longer than the TTL, and went on. */
  stops: number;
  /** Holders that were killed. */
  kills: number;
  /** Holders that got a tenth of the time for a while. */
  throttles: number;
  /** Holders whose connections were cut. */
  cuts: number;
  /** Servers that were killed and started again. */
  restarts: number;
}

/** One target, with or without the fence, after its time. */
export interface RunResult extends Count {
  readonly target: string;
  readonly kind: 'pawl' | 'peer';
  readonly fenced: boolean;
  /** Increments of which a worker said that they were done. */
  readonly acknowledged: number;
  /** Writes that the fence refused. */
  readonly refused: number;
  /** Holders that the fence refused before they had read. */
  readonly refusedRaises: number;
  /** Writes that failed otherwise, as where a stopped process had the file locked. */
  readonly failed: number;
  /** How long nobody was granted the lock after each stop and kill of its holder, in ms. */
  readonly wedgesMs: readonly number[];
  readonly injuries: Injuries;
  /** Workers that ended by themselves, with what they printed last. */
  readonly crashes: readonly string[];
  /** What else went wrong in the workers, and how often. */
  readonly errors: Readonly<Record<string, number>>;
}

/** Workers that take turns on one lock to increment one counter. */
export class Run {
  readonly injuries: Injuries = { stops: 0, kills: 0, throttles: 0, cuts: 0, restarts: 0 };
  readonly wedgesMs: number[] = [];
  readonly #target: Target;
  readonly #fenced: boolean;
  readonly #ports: readonly number[];
  readonly #resource: string;
  readonly #folder: string;
  readonly #ttlMs: number;
  readonly #workerFile: string;
  readonly #workers: WorkerProcess[] = [];
  readonly #outcomes = { done: 0, refused: 0, 'refused-raise': 0, failed: 0 };
  readonly #errors: Record<string, number> = {};
  readonly #crashes: string[] = [];
  readonly #grantedAtMs: number[] = [];
  #ready = 0;
  #onHolder: ((worker: WorkerProcess, leftMs: number) => void) | undefined;

  /** @param folder where its files go; @param workerFile the program of its workers. */
  constructor(
    target: Target,
    options: { fenced: boolean; ports: readonly number[]; folder: string; ttlMs: number; workerFile: string },
  ) {
    this.#target = target;
    this.#fenced = options.fenced;
    this.#ports = options.ports;
    this.#folder = options.folder;
    this.#ttlMs = options.ttlMs;
    this.#workerFile = options.workerFile;
    this.#resource = join(options.folder, `${this.name.replaceAll(' ', '-')}.db`);
  }

  get name(): string {
    if (this.#target.kind === 'peer') return this.#target.name;
    return `${this.#target.name} ${this.#fenced ? 'fenced' : 'unfenced'}`;
  }

  /** Whether its workers reach the lock over a network. */
  get networked(): boolean {
    return this.#ports.length > 0;
  }

  /** Resolves once all its workers have connected. */
  async start(): Promise<void> {
    createResource(this.#resource);
    for (let i = 0; i < WORKERS; i += 1) {
      const worker = new WorkerProcess({
        file: this.#workerFile,
        settings: {
          name: `worker-${i}`,
          resource: this.#resource,
          lock: `torture-${this.#fenced ? 'fenced' : 'unfenced'}-${this.#target.name}`,
          fenced: this.#fenced,
          ttlMs: this.#ttlMs,
        },
        ports: this.#ports,
        locker: (ports) => this.#target.locker(ports, this.#folder),
        hear: (line, from) => this.#hear(line, from),
        crashed: (lastWords) => this.#crashes.push(lastWords),
      });
      this.#workers.push(worker);
      await worker.start();
    }
    if (!(await holds(() => this.#ready >= WORKERS, READY_LIMIT_MS))) {
      throw new Error(`The workers of ${this.name} did not connect: ${this.#said()}`);
    }
  }

  /**
   * Calls `strike` at the moment a worker says that it is between its read and its write, with at least `leftMs` to go.
   *
   * @returns false where nobody got there within the limit.
   */
  async atHolder(leftMs: number, limitMs: number, strike: (worker: WorkerProcess) => void): Promise<boolean> {
    let struck = false;
    this.#onHolder = (worker, left) => {
      if (struck || left < leftMs) return;
      struck = true;
      this.#onHolder = undefined;
      strike(worker);
    };
    await holds(() => struck, limitMs);
    this.#onHolder = undefined;
    return struck;
  }

  /** When the lock was first granted after `sinceMs`; `undefined` if it was not. */
  grantAfter(sinceMs: number): number | undefined {
    const later = this.#grantedAtMs.filter((atMs) => atMs > sinceMs);
    return later.length === 0 ? undefined : Math.min(...later);
  }

  /** Waits for the next grant. @returns false where none came within the limit. */
  async progress(limitMs: number, sinceMs = nowMs()): Promise<boolean> {
    return holds(() => this.grantAfter(sinceMs) !== undefined, limitMs);
  }

  /** Ends the workers and counts. */
  async finish(): Promise<RunResult> {
    await this.stop();
    const { done, refused, failed } = this.#outcomes;
    const count = countUpdates(this.#resource);
    if (done > count.updates) {
      throw new Error(`${done} updates were acknowledged, but the log of ${this.name} has ${count.updates}.`);
    }
    return {
      target: this.#target.name,
      kind: this.#target.kind,
      fenced: this.#fenced,
      ...count,
      acknowledged: done,
      refused,
      refusedRaises: this.#outcomes['refused-raise'],
      failed,
      wedgesMs: this.wedgesMs,
      injuries: this.injuries,
      crashes: this.#crashes,
      errors: this.#errors,
    };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.end()));
  }

  #hear(line: WorkerLine, from: WorkerProcess): void {
    if (line.kind === 'ready') this.#ready += 1;
    if (line.kind === 'error') {
      // Without tokens, ports and times, so that the same is counted as the same.
      const what = line.what.replaceAll(/\d+/g, '#');
      this.#errors[what] = (this.#errors[what] ?? 0) + 1;
    }
    if (line.kind === 'wrote') this.#outcomes[line.outcome] += 1;
    if (line.kind === 'between') {
      this.#grantedAtMs.push(line.grantedAtMs);
      this.#onHolder?.(from, line.leftMs);
    }
  }

  #said(): string {
    return [...Object.keys(this.#errors), ...this.#crashes].join('; ') || 'they said nothing';
  }
}

/** Looks until it holds. @returns whether it did within the limit. */
async function holds(condition: () => boolean, limitMs: number): Promise<boolean> {
  for (const untilMs = nowMs() + limitMs; !condition(); await sleep(LOOK_EVERY_MS)) {
    if (nowMs() > untilMs) return false;
  }
  return true;
}
