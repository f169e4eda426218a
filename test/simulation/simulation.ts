import { checkHistory, checkLinearizable, SimulatedTime } from '../../packages/pawl/src/testing/index.ts';
import { Chance, drawIdsFrom } from './chance.ts';
import { FAULT_KINDS, type FaultKind } from './fault-kinds.ts';
import { StoreWatcher } from './invariants.ts';
import { SimulatedProcess } from './process.ts';
import { WatchedStore } from './stored-acquires.ts';
import { Timeline, Violation } from './timeline.ts';
import { Workload } from './workload.ts';

export interface RunOptions {
  /** From 0 to 2^32 - 1; the same seed is the same run. */
  readonly seed: number;
  /** How many steps, each of some simulated ms with perhaps a fault. */
  readonly steps: number;
  /** All unless set. */
  readonly faults?: ReadonlySet<FaultKind>;
}

export interface RunResult {
  /** What was broken, or `undefined`. */
  readonly violation: string | undefined;
  /** The step in which it was noticed. */
  readonly step: number;
  readonly simulatedMs: number;
  readonly grants: number;
  /** How many operations of clients were judged in the end. */
  readonly operations: number;
  /** How often which fault was injected. */
  readonly injected: ReadonlyMap<FaultKind, number>;
  /** How often what else happened. */
  readonly counts: ReadonlyMap<string, number>;
  readonly timeline: string;
}

const PROCESSES = 3;
const CLIENTS = 3;
/** So long everything may take to come to rest once all is well again, in ms. */
const CALM_MS = 120_000;

/** One run: real core, nodes, clients and fences, in simulated time, on a simulated network, with whatever can go wrong. */
export async function simulate(options: RunOptions): Promise<RunResult> {
  const run = new Run(options);
  const restore = drawIdsFrom(run.chance);
  const onRejection = (error: unknown) => run.reject(error);
  process.on('unhandledRejection', onRejection);
  try {
    return await run.play();
  } finally {
    process.off('unhandledRejection', onRejection);
    restore();
  }
}

class Run {
  readonly chance: Chance;
  readonly #options: RunOptions;
  readonly #faults: ReadonlySet<FaultKind>;
  readonly #time = new SimulatedTime();
  readonly #store = new WatchedStore();
  readonly #timeline = new Timeline(() => this.#time.nowMs);
  readonly #watcher = new StoreWatcher(this.#store);
  readonly #workload: Workload;
  readonly #processes: SimulatedProcess[] = [];
  /** What heals what, and when. */
  #healings: { atMs: number; heal: () => void }[] = [];
  #started = 0;
  #step = 0;
  #operations = 0;
  #rejection: unknown;

  constructor(options: RunOptions) {
    this.#options = options;
    this.chance = new Chance(options.seed);
    this.#faults = options.faults ?? new Set(FAULT_KINDS);
    const shared = {
      chance: this.chance,
      time: this.#time,
      store: this.#store,
      watcher: this.#watcher,
      timeline: this.#timeline,
    };
    this.#workload = new Workload(shared);
  }

  /** C6: nothing that Pawl does may end a process. */
  reject(error: unknown): void {
    this.#rejection ??= error;
  }

  async play(): Promise<RunResult> {
    let violation: string | undefined;
    try {
      for (let i = 0; i < PROCESSES; i += 1) this.#startProcess();
      for (this.#step = 1; this.#step <= this.#options.steps; this.#step += 1) {
        this.#maybeHurt();
        await this.#pass(this.chance.from(5, 120));
      }
      await this.#comeToRest();
    } catch (error) {
      violation = error instanceof Violation ? error.message : `unexpected: ${(error as Error).stack}`;
    }
    return {
      violation,
      step: this.#step,
      simulatedMs: this.#time.nowMs,
      grants: this.#watcher.grants,
      operations: this.#operations,
      injected: this.#timeline.faults,
      counts: this.#timeline.counts,
      timeline: this.#timeline.last(60),
    };
  }

  #startProcess(): void {
    const process = this.#newProcess();
    this.#processes.push(process);
    this.#workload.start(process, CLIENTS);
  }

  #newProcess(): SimulatedProcess {
    this.#started += 1;
    return new SimulatedProcess({
      name: `process-${this.#started}`,
      chance: this.chance,
      time: this.#time,
      store: this.#store,
      faults: this.#faults,
      timeline: this.#timeline,
    });
  }

  async #pass(ms: number): Promise<void> {
    const due = this.#healings.filter(({ atMs }) => atMs <= this.#time.nowMs + ms);
    this.#healings = this.#healings.filter((each) => !due.includes(each));
    for (const { heal } of due) heal();
    await this.#time.advance(ms);
    this.#watcher.check();
    this.#workload.check();
    if (this.#rejection !== undefined) throw new Violation(`C6: an unhandled rejection: ${this.#rejection}`);
  }

  #maybeHurt(): void {
    const { chance } = this;
    const process = chance.pick(this.#processes);
    const hurt = (kind: FaultKind, probability: number): boolean => {
      if (!this.#faults.has(kind) || !chance.happens(probability)) return false;
      this.#timeline.noteFault(kind, process.name);
      return true;
    };
    if (hurt('pauses', 0.02)) {
      process.pause();
      this.#later(chance.from(200, 8000), () => process.resume());
    }
    if (hurt('partitions', 0.02)) {
      process.setReachable(false);
      this.#later(chance.from(200, 6000), () => process.setReachable(true));
    }
    if (hurt('outages', 0.004)) {
      for (const each of this.#processes) each.setReachable(false);
      this.#later(chance.from(100, 4000), () => {
        for (const each of this.#processes) each.setReachable(true);
      });
    }
    if (hurt('wallJumps', 0.02)) process.clock.jumpWall(chance.from(-100_000, 100_000));
    if (hurt('sleeps', 0.01)) {
      process.clock.fallAsleep();
      this.#later(chance.from(100, 6000), () => process.clock.wakeUp());
    }
    if (hurt('crashes', 0.004)) this.#crash(process);
  }

  #crash(process: SimulatedProcess): void {
    process.crash();
    this.#processes.splice(this.#processes.indexOf(process), 1);
    this.#startProcess();
  }

  #later(ms: number, heal: () => void): void {
    this.#healings.push({ atMs: this.#time.nowMs + ms, heal });
  }

  /** L1, S6: once all is well, everybody gets on, and once all have gone, nothing is left. */
  async #comeToRest(): Promise<void> {
    for (const { heal } of this.#healings.splice(0)) heal();
    for (const process of this.#processes) {
      process.resume();
      process.clock.wakeUp();
      process.setReachable(true);
      process.calm = true;
    }
    this.#workload.releaseForgotten();
    this.#workload.careful = true;
    const before = this.#watcher.grants;
    await this.#until(() => this.#watcher.grants > before + 20, 'L1: nobody gets on although all is well');
    this.#workload.over = true;
    const idle = () => {
      this.#workload.releaseForgotten();
      return this.#workload.idle;
    };
    await this.#until(
      idle,
      () => `L1: ${this.#workload.unfinished.join(', ')} never came to an end\n${this.#watcher.describe()}`,
    );
    const wrong = checkHistory({ grants: this.#workload.grants, effects: this.#workload.effects });
    if (wrong.length > 0) throw new Violation(wrong.join('\n'));
    const operations = this.#workload.observations.operations();
    this.#operations = operations.length;
    const [contradiction] = checkLinearizable(operations);
    if (contradiction !== undefined) throw new Violation(`S1–S4, S7: ${contradiction.message}`);
    const closing = Promise.all(this.#processes.map((process) => process.pawl.close()));
    let closed = false;
    void closing.then(() => {
      closed = true;
    });
    await this.#until(() => closed, 'a client could not be closed');
    // A node has to be there to bury those who died.
    const undertaker = this.#newProcess();
    undertaker.calm = true;
    await this.#until(
      () => ['lock/', 'wait/', 'req/'].every((prefix) => this.#store.list(prefix, 1).length === 0),
      () =>
        `S6: left behind: ${['lock/', 'wait/', 'req/'].flatMap((prefix) => this.#store.list(prefix, 5).map(({ key }) => key)).join(', ')}`,
    );
  }

  async #until(condition: () => boolean, otherwise: string | (() => string)): Promise<void> {
    const limitMs = this.#time.nowMs + CALM_MS;
    while (!condition()) {
      if (this.#time.nowMs > limitMs)
        throw new Violation(typeof otherwise === 'string' ? otherwise : otherwise());
      await this.#pass(100);
    }
  }
}
