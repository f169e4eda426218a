import { type Clock, systemClock, type Timer } from '../../clock.ts';
import { ClosedError } from '../../errors.ts';
import type {
  CommitResult,
  ConditionalWrite,
  Engine,
  EngineGuarantees,
  Entry,
  ReadQuery,
  ReadResult,
  Version,
} from '../engine.ts';
import { checkVersionFloor } from '../version-floor.ts';
import { MemoryFaults } from './faults.ts';
import { MemoryStore } from './store.ts';

export { type EngineMethod, type Fault, MemoryFaults } from './faults.ts';
export { MemoryStore } from './store.ts';

/** A session that has ended and was not forgotten is told of again so often, in ms. */
const REPEAT_MS = 1000;

/** What the memory engine promises. */
export const memoryGuarantees: EngineGuarantees = {
  engine: 'memory',
  survives: 'nothing: it lives in one process',
  expiryDecidedBy: 'the clock it was given',
  tokensRestOn: 'a counter in memory',
  wakeUp: 'direct',
  durable: false,
  mutualExclusion: 'yes',
  needsFencing: true,
  minTtlMs: 1,
  sweepMs: 0,
};

export interface MemoryEngineOptions {
  /** Engines over one store share all locks; a store of its own unless set. */
  readonly store?: MemoryStore;
  /** Decides when sessions expire; the system's clock unless set. */
  readonly clock?: Clock;
  /** What shall go wrong; nothing unless set. */
  readonly faults?: MemoryFaults;
}

/** An engine in memory: for tests, and for locks among the tasks of one process. */
export function memoryEngine(options: MemoryEngineOptions = {}): Engine {
  return new MemoryEngine(options);
}

class MemoryEngine implements Engine {
  readonly guarantees = memoryGuarantees;
  readonly #store: MemoryStore;
  readonly #clock: Clock;
  readonly #faults: MemoryFaults;
  readonly #stops = new Set<() => void>();
  #timer: Timer | undefined;
  #closed = false;

  constructor({
    store = new MemoryStore(),
    clock = systemClock,
    faults = new MemoryFaults(),
  }: MemoryEngineOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#faults = faults;
    this.#stops.add(store.onOpened(() => this.#armExpiry()));
  }

  read(query: ReadQuery): Promise<ReadResult> {
    return this.#run('read', () => this.#store.read(query));
  }

  list(prefix: string, limit: number, after?: string): Promise<readonly Entry[]> {
    return this.#run('list', () => this.#store.list(prefix, limit, after));
  }

  commit(batch: readonly ConditionalWrite[]): Promise<readonly CommitResult[]> {
    return this.#run('commit', () => batch.map((write) => this.#store.commit(write, this.#nowMs())));
  }

  openSession(id: string, ttlMs: number): Promise<boolean> {
    return this.#run('openSession', () => this.#store.openSession(id, ttlMs, this.#nowMs()));
  }

  keepAlive(ids: readonly string[]): Promise<ReadonlySet<string>> {
    return this.#run('keepAlive', () => this.#store.keepAlive(ids, this.#nowMs()));
  }

  endSession(id: string): Promise<void> {
    return this.#run('endSession', () => {
      this.#store.expire(this.#nowMs());
      this.#store.endSession(id);
    });
  }

  watchEndings(listener: (ids: readonly string[]) => void): () => void {
    this.#checkOpen();
    let timer: Timer | undefined;
    const tell = (ids: readonly string[]) => {
      listener(ids);
      repeatLater();
    };
    // Whoever was told may not have come to an end with it.
    const repeatLater = () => {
      timer ??= this.#clock.setTimer(
        REPEAT_MS,
        () => {
          timer = undefined;
          const left = this.#store.endedSessions();
          if (left.length > 0) tell(left);
        },
        { keepProcess: false },
      );
    };
    const stop = this.#store.onEnded(tell);
    return this.#remember(() => {
      stop();
      timer?.cancel();
    });
  }

  forgetSessions(ids: readonly string[]): Promise<void> {
    return this.#run('forgetSessions', () => this.#store.forget(ids));
  }

  subscribe(inbox: string, listener: (message: string, version: Version) => void): () => void {
    this.#checkOpen();
    const deliver = (message: string, version: Version) => {
      const times = this.#faults.onWake?.(inbox, message) ?? 1;
      for (let i = 0; i < times; i += 1) listener(message, version);
    };
    return this.#remember(this.#store.subscribe(inbox, deliver));
  }

  raiseVersion(version: Version): Promise<Version> {
    return this.#run('raiseVersion', () => {
      checkVersionFloor(version);
      return this.#store.raiseVersion(version);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    for (const stop of this.#stops) stop();
    this.#stops.clear();
  }

  async #run<T>(method: Parameters<MemoryFaults['run']>[0], call: () => T): Promise<T> {
    this.#checkOpen();
    return this.#faults.run(method, this.#clock, call);
  }

  #checkOpen(): void {
    if (this.#closed) throw new ClosedError('The memory engine');
  }

  #remember(stop: () => void): () => void {
    this.#stops.add(stop);
    return () => {
      this.#stops.delete(stop);
      stop();
    };
  }

  /** Sessions are found to have expired by whoever asks; the timer is for those who only listen. */
  #armExpiry(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const nextMs = this.#store.nextExpiryMs;
    if (nextMs === Number.POSITIVE_INFINITY || this.#closed) return;
    const look = () => {
      this.#store.expire(this.#nowMs());
      this.#armExpiry();
    };
    this.#timer = this.#clock.setTimer(Math.max(0, nextMs - this.#nowMs()), look, { keepProcess: false });
  }

  #nowMs(): number {
    return this.#clock.sinceBootMs();
  }
}
