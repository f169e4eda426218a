import { open } from '../../packages/pawl/src/client/open.ts';
import type { Pawl } from '../../packages/pawl/src/client/pawl.ts';
import {
  type Fault,
  MemoryFaults,
  type MemoryStore,
  memoryEngine,
  type SimulatedClock,
  type SimulatedTime,
} from '../../packages/pawl/src/testing/index.ts';
import type { Chance } from './chance.ts';
import type { Timeline } from './timeline.ts';

/** The kinds of faults, each of which can be left out to find which of them a violation needs. */
export const FAULT_KINDS = [
  'delays',
  'lostReplies',
  'refusals',
  'silences',
  'lostWakes',
  'doubledWakes',
  'partitions',
  'pauses',
  'sleeps',
  'wallJumps',
  'drift',
  'crashes',
  'outages',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

/** How long an engine waits for an answer, in ms. */
const SILENCE_MS = 5000;

export interface ProcessOptions {
  readonly name: string;
  readonly chance: Chance;
  readonly time: SimulatedTime;
  readonly store: MemoryStore;
  readonly faults: ReadonlySet<FaultKind>;
  readonly timeline: Timeline;
}

/** One process: a client and a node over the common store, with a clock and a network of its own. */
export class SimulatedProcess {
  readonly name: string;
  readonly clock: SimulatedClock;
  readonly pawl: Pawl;
  readonly #engineClock: SimulatedClock;
  readonly #faults = new MemoryFaults();
  readonly #timeline: Timeline;
  #dead = false;
  /** While set, the network behaves. */
  calm = false;

  constructor({ name, chance, time, store, faults, timeline }: ProcessOptions) {
    this.name = name;
    this.#timeline = timeline;
    const rate = faults.has('drift') ? 1 + (chance.share() - 0.5) / 1000 : 1;
    this.clock = time.clock({ rate });
    // Calls on their way are on the network, not in the process: they arrive also while it is stopped.
    this.#engineClock = time.clock();
    this.#faults.onCall = () => this.#fault(chance, faults);
    this.#faults.onWake = () => {
      if (this.calm) return 1;
      if (faults.has('lostWakes') && chance.happens(0.1)) return this.#count('wake lost', 0);
      if (faults.has('doubledWakes') && chance.happens(0.1)) return this.#count('wake doubled', 2);
      return 1;
    };
    const engine = memoryEngine({ store, clock: this.#engineClock, faults: this.#faults });
    this.pawl = open(engine, { clock: this.clock });
  }

  get alive(): boolean {
    return !this.#dead;
  }

  /** Stopped as by SIGSTOP: its timers do not fire, and what it is told it notices later. */
  pause(): void {
    this.clock.stall();
  }

  resume(): void {
    this.clock.resume();
  }

  setReachable(reachable: boolean): void {
    this.#faults.unreachable = !reachable;
  }

  /** Ends at once, without a word to anybody. */
  crash(): void {
    this.#dead = true;
    this.#faults.onCall = () => ({ kind: 'never' });
    this.#faults.onWake = () => 0;
    this.clock.stall();
    this.#engineClock.stall();
  }

  #fault(chance: Chance, faults: ReadonlySet<FaultKind>): Fault | undefined {
    if (this.calm) return undefined;
    const some = () => (faults.has('delays') && chance.happens(0.3) ? chance.from(1, 60) : 0);
    const usual = { delayMs: some(), replyDelayMs: some() };
    if (faults.has('lostReplies') && chance.happens(0.02))
      return this.#count('reply lost', { ...usual, kind: 'lost' });
    if (faults.has('refusals') && chance.happens(0.02))
      return this.#count('refused', { ...usual, kind: 'refused' });
    if (faults.has('silences') && chance.happens(0.005)) {
      // No engine lets its callers wait for ever.
      const gaveUp: Fault = chance.happens(0.5)
        ? { kind: 'lost', replyDelayMs: SILENCE_MS }
        : { kind: 'refused', delayMs: SILENCE_MS };
      return this.#count('silence', gaveUp);
    }
    return usual;
  }

  #count<T>(kind: string, value: T): T {
    this.#timeline.note(kind, this.name);
    return value;
  }
}
