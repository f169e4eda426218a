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
import type { FaultKind } from './fault-kinds.ts';
import type { Timeline } from './timeline.ts';

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
    const rate = faults.has('drift') ? this.#count('drift', 1 + (chance.share() - 0.5) / 1000) : 1;
    this.clock = time.clock({ rate });
    // Calls on their way are on the network, not in the process: they arrive also while it is stopped.
    this.#engineClock = time.clock();
    this.#faults.onCall = () => this.#fault(chance, faults);
    this.#faults.onWake = () => {
      if (this.calm) return 1;
      if (faults.has('lostWakes') && chance.happens(0.1)) return this.#count('lostWakes', 0);
      if (faults.has('doubledWakes') && chance.happens(0.1)) return this.#count('doubledWakes', 2);
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
    // Now and then a reply takes as long as a lease: whoever counts from its arrival counts too long.
    const late = faults.has('delays') && chance.happens(0.05) ? chance.from(200, 2000) : 0;
    const usual = { delayMs: some(), replyDelayMs: some() + late };
    if (usual.delayMs + usual.replyDelayMs > 0) this.#timeline.countFault('delays');
    if (faults.has('lostReplies') && chance.happens(0.02))
      return this.#count('lostReplies', { ...usual, kind: 'lost' });
    if (faults.has('refusals') && chance.happens(0.02))
      return this.#count('refusals', { ...usual, kind: 'refused' });
    if (faults.has('silences') && chance.happens(0.005)) {
      // No engine lets its callers wait for ever.
      const gaveUp: Fault = chance.happens(0.5)
        ? { kind: 'lost', replyDelayMs: SILENCE_MS }
        : { kind: 'refused', delayMs: SILENCE_MS };
      return this.#count('silences', gaveUp);
    }
    return usual;
  }

  #count<T>(kind: FaultKind, value: T): T {
    this.#timeline.noteFault(kind, this.name);
    return value;
  }
}
