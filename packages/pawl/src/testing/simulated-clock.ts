import type { Clock, Timer } from '../clock.ts';

interface Pending {
  dueMs: number;
  readonly order: number;
  readonly fire: () => void;
}

export interface SimulatedClockOptions {
  /** How fast this clock's monotonic time runs against true time; 1 unless set. */
  readonly rate?: number;
  /** Where the wall clock starts, ms since the epoch. */
  readonly wallMs?: number;
}

const START_OF_2026_MS = 1_767_225_600_000;

/** True time, which several clocks may share: each process of a simulation has its own clock in one time. */
export class SimulatedTime {
  readonly #clocks = new Set<SimulatedClock>();
  #nowMs = 0;

  get nowMs(): number {
    return this.#nowMs;
  }

  /** A clock in this time. */
  clock(options: SimulatedClockOptions = {}): SimulatedClock {
    return new SimulatedClock({ ...options, time: this });
  }

  /** For clocks. */
  add(clock: SimulatedClock): void {
    this.#clocks.add(clock);
  }

  /**
   * Lets time pass: fires all timers that come due, in the order of their due times, and lets everything that a timer sets
   * off come to rest before the next one fires.
   */
  async advance(byMs: number): Promise<void> {
    const untilMs = this.#nowMs + byMs;
    await rest();
    for (;;) {
      let next: { clock: SimulatedClock; dueMs: number } | undefined;
      for (const clock of this.#clocks) {
        const dueMs = clock.nextDueMs();
        if (dueMs !== undefined && dueMs <= untilMs && (next === undefined || dueMs < next.dueMs)) {
          next = { clock, dueMs };
        }
      }
      if (next === undefined) break;
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.clock.fireNext();
      await rest();
    }
    this.#nowMs = untilMs;
    await rest();
  }
}

/** A clock that moves only when told: it can drift, jump, sleep and stand still. */
export class SimulatedClock implements Clock {
  readonly #time: SimulatedTime;
  readonly #rate: number;
  readonly #timers = new Set<Pending>();
  /** Offsets of the three clocks against true time, in ms. */
  #wallOffsetMs: number;
  #bootOffsetMs = 0;
  #sleptMs = 0;
  #boot = 1;
  #order = 0;
  #stalled = false;
  #asleepSinceMs: number | undefined;

  constructor(options: SimulatedClockOptions & { readonly time?: SimulatedTime } = {}) {
    this.#time = options.time ?? new SimulatedTime();
    this.#rate = options.rate ?? 1;
    this.#wallOffsetMs = options.wallMs ?? START_OF_2026_MS;
    this.#time.add(this);
  }

  monotonicMs(): number {
    return ((this.#asleepSinceMs ?? this.#time.nowMs) - this.#sleptMs) * this.#rate;
  }

  wallMs(): number {
    return this.#time.nowMs + this.#wallOffsetMs;
  }

  sinceBootMs(): number {
    return this.#time.nowMs + this.#bootOffsetMs;
  }

  bootId(): string {
    return `boot-${this.#boot}`;
  }

  setTimer(delayMs: number, fire: () => void): Timer {
    const pending = {
      dueMs: this.#time.nowMs + Math.max(0, delayMs) / this.#rate,
      order: this.#order++,
      fire,
    };
    this.#timers.add(pending);
    return { cancel: () => this.#timers.delete(pending) };
  }

  /** Lets time pass, for all clocks that share it. */
  advance(byMs: number): Promise<void> {
    return this.#time.advance(byMs);
  }

  /** Steps the wall clock, in either direction; nothing else changes. */
  jumpWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  /** The machine sleeps: wall clock and time since boot go on, the monotonic clock and timers stand still meanwhile. */
  async sleep(forMs: number): Promise<void> {
    this.fallAsleep();
    await this.#time.advance(forMs);
    this.wakeUp();
  }

  /** As {@link sleep}, until {@link wakeUp}: for several clocks in one time. */
  fallAsleep(): void {
    this.#asleepSinceMs ??= this.#time.nowMs;
  }

  wakeUp(): void {
    if (this.#asleepSinceMs === undefined) return;
    const sleptMs = this.#time.nowMs - this.#asleepSinceMs;
    this.#asleepSinceMs = undefined;
    this.#sleptMs += sleptMs;
    for (const timer of this.#timers) timer.dueMs += sleptMs;
  }

  /** The process is stopped, as by SIGSTOP: time passes, but none of its timers fires until {@link resume}. */
  stall(): void {
    this.#stalled = true;
  }

  /** The process goes on; timers that came due meanwhile fire as soon as time is advanced, by 0 at least. */
  resume(): void {
    this.#stalled = false;
  }

  /** The machine restarts: time since boot counts from zero under another boot id. */
  reboot(): void {
    this.#boot += 1;
    this.#bootOffsetMs = -this.#time.nowMs;
  }

  /** How many timers wait: none may linger once everything was closed. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** For the time: when the next timer is due in true time. */
  nextDueMs(): number | undefined {
    return this.#stalled || this.#asleepSinceMs !== undefined ? undefined : this.#next()?.dueMs;
  }

  /** For the time: fires the next timer. */
  fireNext(): void {
    const next = this.#next();
    if (next === undefined) return;
    this.#timers.delete(next);
    next.fire();
  }

  #next(): Pending | undefined {
    let next: Pending | undefined;
    for (const timer of this.#timers) {
      const earlier = next === undefined || timer.dueMs < next.dueMs;
      if (earlier || (timer.dueMs === next?.dueMs && timer.order < next.order)) next = timer;
    }
    return next;
  }
}

/** More promise jobs in a row than anything here chains. */
const ROUNDS = 200;

/** Lets chains of promises come to rest: whatever a timer has set off, and does not wait for time, is done after it. */
async function rest(): Promise<void> {
  for (let i = 0; i < ROUNDS; i += 1) await undefined;
}
