import type { Clock } from '../../clock.ts';
import type { Sessions } from './sessions.ts';
import { Ticker } from './ticker.ts';
import type { Transaction, Transactions } from './transactions.ts';

/** How often it is looked whether the time of a session is up, while anybody wants to know. */
const SWEEP_PERIOD_MS = 100;
/** A listener is told again of a session that was not forgotten, but not more often than this. */
const REPEAT_MS = 1000;

interface Watcher {
  readonly listener: (ids: readonly string[]) => void;
  /** When it was last told of a session, by the monotonic clock. */
  told: Map<string, number>;
}

/** Tells of the sessions that have ended, and ends those whose time is up. */
export class Endings {
  readonly #sessions: Sessions;
  readonly #transactions: Transactions;
  readonly #clock: Clock;
  readonly #ticker: Ticker;
  readonly #watchers = new Set<Watcher>();
  #sweeping = false;

  constructor(sessions: Sessions, transactions: Transactions, clock: Clock) {
    this.#sessions = sessions;
    this.#transactions = transactions;
    this.#clock = clock;
    this.#ticker = new Ticker(clock, SWEEP_PERIOD_MS, () => this.#look());
  }

  watch(listener: (ids: readonly string[]) => void): () => void {
    const watcher: Watcher = { listener, told: new Map() };
    this.#watchers.add(watcher);
    this.#ticker.start();
    queueMicrotask(() => this.#look());
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.#ticker.stop();
    };
  }

  /** Tells of what one of this engine's own transactions ended, without waiting for the next look. */
  committed({ ended }: Transaction): void {
    if (ended.length === 0) return;
    const nowMs = this.#clock.monotonicMs();
    for (const watcher of this.#watchers) {
      for (const id of ended) watcher.told.set(id, nowMs);
      this.#tell(watcher, ended);
    }
  }

  close(): void {
    this.#watchers.clear();
    this.#ticker.stop();
  }

  #look(): void {
    if (this.#watchers.size === 0) return;
    try {
      if (this.#sessions.anyDue(this.#clock.sinceBootMs()) || this.#transactions.wasRestarted())
        this.#sweep();
      this.#tellAll(this.#sessions.ended());
    } catch {
      // The next look comes soon; whoever calls the engine is told what is wrong with it.
    }
  }

  #sweep(): void {
    if (this.#sweeping) return;
    this.#sweeping = true;
    this.#transactions
      .submit((transaction) => this.#sessions.endDue(transaction))
      .catch(() => {})
      .finally(() => {
        this.#sweeping = false;
      });
  }

  #tellAll(ended: readonly string[]): void {
    const nowMs = this.#clock.monotonicMs();
    for (const watcher of this.#watchers) {
      const told = new Map<string, number>();
      const news: string[] = [];
      for (const id of ended) {
        const lastMs = watcher.told.get(id);
        const isNews = lastMs === undefined || nowMs - lastMs >= REPEAT_MS;
        if (isNews) news.push(id);
        told.set(id, isNews ? nowMs : lastMs);
      }
      watcher.told = told;
      if (news.length > 0) this.#tell(watcher, news);
    }
  }

  /** In a turn of its own, so that a listener that throws disturbs nobody here. */
  #tell(watcher: Watcher, ids: readonly string[]): void {
    queueMicrotask(() => {
      if (this.#watchers.has(watcher)) watcher.listener(ids);
    });
  }
}
