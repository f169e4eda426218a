/**
 * Torture: real processes increment a counter under a lock, with and without the fence, while a nemesis stops, kills and throttles them,
 * cuts their connections and restarts the servers.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { InvalidArgumentError } from '../../errors.ts';
import { type Candidate, choose, type Unmeasured } from './choice.ts';
import { Cleanup } from './cleanup.ts';
import { torment } from './nemesis.ts';
import { Run, type RunResult } from './run.ts';
import { type Servers, TARGET_NAMES, type Target } from './targets.ts';

/** Within the bounds of every server, etcd's included, in ms. */
const TTL_MS = 2000;
const DELAY_RESOLUTION_MS = 10;

/** What to torture, and for how long. */
export interface TortureOptions {
  /** Names of targets; all where it is not given. */
  readonly targets?: readonly string[] | undefined;
  /** How long each target is tortured, in ms; every injury is done at least once, however short it is. */
  readonly forMs: number;
  /** How many groups of targets at once, from 1. A group is what shares servers. */
  readonly lanes: number;
  /** The program of a worker: it gives its first argument, as JSON, to `work`. */
  readonly workerFile: string;
  /** Told which targets are being tortured. */
  readonly tell: (what: string) => void;
}

/** What was measured. */
export interface TortureReport {
  readonly machine: {
    readonly node: string;
    readonly cpus: number;
    readonly loadBefore: number;
    readonly seconds: number;
    readonly ttlMs: number;
    /** For how long at most this process, with the networks of all runs, did not get on. */
    readonly heldUpMs: number;
  };
  /** No run with the fence lost an update or let a late write through, and each did some. */
  readonly fencedOnesHeld: boolean;
  readonly results: readonly RunResult[];
  readonly unmeasured: readonly Unmeasured[];
}

/** Torture that is under way. */
export interface Torture {
  /** Stays open for ever where it is stopped before. */
  readonly report: Promise<TortureReport>;
  /** Ends all processes and removes all files early. */
  stop(): Promise<void>;
}

/**
 * Starts to torture. Servers are started from the programs of this machine; what it has not is skipped, and the report says so.
 *
 * @throws InvalidArgumentError where a target is not known.
 */
export function startTorture(options: TortureOptions): Torture {
  for (const name of options.targets ?? []) {
    if (!TARGET_NAMES.includes(name)) {
      throw new InvalidArgumentError('target', `one of ${TARGET_NAMES.join(', ')}`, name);
    }
  }
  const session = new Session(options);
  return { report: session.report(), stop: () => session.stop() };
}

/** A group whose servers are running. */
interface Stage {
  readonly targets: readonly Target[];
  readonly servers: Servers;
  readonly cleanup: Cleanup;
}

class Session {
  readonly #options: TortureOptions;
  readonly #cleanups: Cleanup[] = [];
  readonly #results: RunResult[] = [];
  readonly #unmeasured: Unmeasured[] = [];
  #stopped = false;

  constructor(options: TortureOptions) {
    this.#options = options;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.allSettled(this.#cleanups.map((cleanup) => cleanup.run()));
  }

  async report(): Promise<TortureReport> {
    const { targets, forMs, lanes } = this.#options;
    const loadBefore = loadavg()[0] ?? 0;
    const { candidates, skipped } = choose(targets);
    this.#unmeasured.push(...skipped);
    // All servers first: what starts them stops this process for seconds, and with it the networks of all runs.
    const waiting: Stage[] = [];
    for (const candidate of candidates) {
      const stage = await this.#prepare(candidate);
      await this.#haltIfStopped();
      if (stage !== undefined) waiting.push(stage);
    }
    const delays = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
    delays.enable();
    // Each lane takes the next when it is done with one.
    const takeAll = async () => {
      for (let stage = waiting.shift(); stage !== undefined; stage = waiting.shift())
        await this.#torture(stage);
    };
    await Promise.all(Array.from({ length: lanes }, takeAll));
    delays.disable();
    const results = this.#results.sort(
      (a, b) => TARGET_NAMES.indexOf(a.target) - TARGET_NAMES.indexOf(b.target),
    );
    const heldUpMs = Math.round(delays.max / 1e6) || 0;
    const machine = { node: process.version, cpus: availableParallelism(), loadBefore };
    return {
      machine: { ...machine, seconds: forMs / 1000, ttlMs: TTL_MS, heldUpMs },
      fencedOnesHeld: results
        .filter(({ fenced }) => fenced)
        .every(({ lost, lateWrites, updates }) => lost === 0 && lateWrites === 0 && updates > 0),
      results,
      unmeasured: this.#unmeasured,
    };
  }

  async #prepare({ group, targets }: Candidate): Promise<Stage | undefined> {
    const cleanup = new Cleanup();
    this.#cleanups.push(cleanup);
    try {
      return { targets, servers: await group.start((stopServers) => cleanup.add(stopServers)), cleanup };
    } catch (error) {
      await this.#fail(targets, error);
      await cleanup.run();
      return undefined;
    }
  }

  async #torture({ targets, servers, cleanup }: Stage): Promise<void> {
    const { forMs, workerFile, tell } = this.#options;
    try {
      tell(targets.map(({ name }) => name).join(', '));
      const folder = mkdtempSync(join(tmpdir(), 'pawl-torture-'));
      cleanup.add(() => rmSync(folder, { recursive: true, force: true }));
      const runs = targets.flatMap((target) =>
        (target.kind === 'pawl' ? [true, false] : [false]).map(
          (fenced) => new Run(target, { fenced, ports: servers.ports, folder, ttlMs: TTL_MS, workerFile }),
        ),
      );
      cleanup.add(() => Promise.all(runs.map((run) => run.stop())));
      await Promise.all(runs.map((run) => run.start()));
      await torment(runs, servers, TTL_MS, forMs);
      for (const run of runs) this.#results.push(await run.finish());
    } catch (error) {
      await this.#fail(targets, error);
    } finally {
      await this.#haltIfStopped();
      await cleanup.run();
    }
  }

  async #fail(targets: readonly Target[], error: unknown): Promise<void> {
    await this.#haltIfStopped();
    const why = error instanceof Error ? error.message : String(error);
    this.#unmeasured.push(...targets.map(({ name }) => ({ target: name, kind: 'failed' as const, why })));
  }

  /** Nothing more is started or counted once all is being stopped. */
  async #haltIfStopped(): Promise<void> {
    if (this.#stopped) await new Promise(() => {});
  }
}
