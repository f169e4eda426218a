import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { open } from '../../src/client/open.ts';
import type { Engine } from '../../src/engines/engine.ts';
import { checkHistory, checkLinearizable, type EffectSeen } from '../../src/testing/index.ts';
import { Recording, type Said } from './recording.ts';
import type { WorkerSettings } from './worker.ts';

export interface ArenaOptions {
  readonly ttlMs: number;
  /** How many locks they take turns on; 3 unless set. */
  readonly locks?: number;
  /** How many clients there are in each process; 3 unless set. */
  readonly clients?: number;
}

/** How long a worker may take to get to the point where it says something, in ms. */
const LIMIT_MS = 60_000;

/** One process with a node of its own. */
export class Worker {
  readonly recording: Recording;
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;
  #rest = '';
  #said = new Set<string>();

  constructor(settings: WorkerSettings) {
    this.recording = new Recording(settings.name);
    const file = fileURLToPath(new URL('./worker.ts', import.meta.url));
    this.#process = spawn(process.execPath, [file, JSON.stringify(settings)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#ended = new Promise((resolve) => this.#process.once('exit', resolve));
    this.#process.stdout?.on('data', (chunk) => this.#hear(String(chunk)));
  }

  async ready(): Promise<void> {
    await this.#until('ready');
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process.kill(signal);
  }

  /** Lets it finish what it is at. */
  async finish(): Promise<void> {
    this.#process.stdin?.end();
    await this.#until('done');
    await this.#ended;
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }

  async #until(kind: string): Promise<void> {
    for (let leftMs = LIMIT_MS; !this.#said.has(kind); leftMs -= 20) {
      if (leftMs <= 0 || this.#process.exitCode !== null) throw new Error(`A worker was never ${kind}.`);
      await sleep(20);
    }
  }

  #hear(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const said: Said = JSON.parse(line);
      this.#said.add(said.kind);
      this.recording.hear(said);
    }
  }
}

/** Workers on one store, and the resource that they write to. */
export class Arena {
  readonly workers: Worker[] = [];
  readonly #killed: Worker[] = [];
  readonly #ttlMs: number;
  readonly #locks: readonly string[];
  readonly #clients: number;
  readonly #folder = mkdtempSync(join(tmpdir(), 'pawl-faults-'));

  constructor({ ttlMs, locks = 3, clients = 3 }: ArenaOptions) {
    this.#ttlMs = ttlMs;
    this.#locks = Array.from({ length: locks }, (_, i) => `lock-${i}`);
    this.#clients = clients;
    const db = this.#resource();
    db.exec(`PRAGMA journal_mode = WAL; CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
      CREATE TABLE effect (resource TEXT NOT NULL, token INTEGER NOT NULL, value INTEGER NOT NULL)`);
    for (const lock of this.#locks) db.prepare('INSERT INTO counter VALUES (?, 0)').run(lock);
    db.close();
  }

  /** Where a test may put a store's file. */
  file(name: string): string {
    return join(this.#folder, name);
  }

  async start(addresses: readonly string[]): Promise<void> {
    for (const address of addresses) {
      this.workers.push(
        new Worker({
          name: `worker-${this.workers.length}`,
          address,
          resource: this.file('resource.db'),
          locks: this.#locks,
          clients: this.#clients,
          ttlMs: this.#ttlMs,
        }),
      );
    }
    await Promise.all(this.workers.map((worker) => worker.ready()));
  }

  /** Kills a worker: what it printed last may be missing, but what it did is still at the resource. */
  async killOne(): Promise<void> {
    const worker = this.workers.pop();
    worker?.kill();
    this.#killed.push(...(worker === undefined ? [] : [worker]));
  }

  /** Waits until each of these workers has been granted `more` locks from now on: nobody is stuck. */
  async progress(more: number, workers: readonly Worker[] = this.workers): Promise<void> {
    const before = workers.map((worker) => worker.recording.grants.length);
    for (let leftMs = LIMIT_MS; ; leftMs -= 50) {
      if (workers.every((worker, i) => worker.recording.grants.length >= (before[i] ?? 0) + more)) return;
      if (leftMs <= 0) {
        const codes = workers.map((worker) => JSON.stringify([...worker.recording.codes]));
        throw new Error(`Some got no lock any more; their errors: ${codes.join(' ')}`);
      }
      await sleep(50);
    }
  }

  /** Ends the workers and judges everything that was seen. */
  async judge(engine: Engine): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.finish()));
    const db = this.#resource();
    const rows = db
      .prepare('SELECT resource, CAST(token AS TEXT) AS token, value FROM effect ORDER BY rowid')
      .all();
    const effects = rows.map((row): EffectSeen & { value: number } => ({
      resource: String(row.resource),
      token: BigInt(String(row.token)),
      value: Number(row.value),
    }));
    db.close();
    const recordings = [...this.workers, ...this.#killed].map(({ recording }) => recording);
    const grants = recordings.flatMap((recording) => recording.grants);
    expect(checkHistory({ grants, effects })).toEqual([]);
    const operations = recordings.flatMap((recording) => recording.operations());
    expect(checkLinearizable(operations).map(({ message }) => message)).toEqual([]);
    // S8: whoever raised the fence before reading never wrote over what it had not seen.
    for (const [resource, all] of Map.groupBy(effects, (effect) => effect.resource)) {
      expect([resource, all.map(({ value }) => value)]).toEqual([resource, all.map((_, i) => i + 1)]);
    }
    const codes = new Set(this.workers.flatMap((worker) => [...worker.recording.codes.keys()]));
    expect([...codes].filter((code) => code.startsWith('unexpected'))).toEqual([]);
    await this.#nothingIsLeft(engine);
  }

  stop(): void {
    for (const worker of this.workers) worker.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** S6: once all have gone, no holder, no waiter and no request is left, at the latest when their sessions have ended. */
  async #nothingIsLeft(engine: Engine): Promise<void> {
    const left = async () =>
      (await Promise.all(['lock/', 'wait/', 'req/'].map((prefix) => engine.list(prefix, 100)))).flat();
    // A node has to be there to bury whom the workers left behind.
    const pawl = open(engine);
    try {
      await expect
        .poll(async () => (await left()).map(({ key }) => key), { timeout: LIMIT_MS, interval: 200 })
        .toEqual([]);
    } finally {
      await pawl.close();
    }
  }

  #resource(): DatabaseSync {
    return new DatabaseSync(this.file('resource.db'));
  }
}
