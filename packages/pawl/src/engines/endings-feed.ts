import type { Clock, Timer } from '../clock.ts';

/** A listener is told again of a session that was not forgotten, but not more often than this, in ms. */
const REPEAT_MS = 1000;
/** How long after a look that failed the next comes at the latest, in ms. */
const RETRY_MS = 250;

export interface EndingsFeedOptions {
  readonly clock: Clock;
  /** How often to look, in ms. */
  readonly periodMs: number;
  /** Ends sessions whose time is up. @returns all that have ended and were not forgotten. */
  readonly look: () => Promise<readonly string[]>;
}

/** Tells of ended sessions: looks again and again while anybody watches, for stores that do not tell by themselves or not reliably. */
export class EndingsFeed {
  readonly #options: EndingsFeedOptions;
  readonly #watchers = new Map<(ids: readonly string[]) => void, Map<string, number>>();
  #timer: Timer | undefined;
  #looking = false;
  #lookAgain = false;

  constructor(options: EndingsFeedOptions) {
    this.#options = options;
  }

  watch(listener: (ids: readonly string[]) => void): () => void {
    this.#watchers.set(listener, new Map());
    this.#lookSoon(0);
    return () => {
      this.#watchers.delete(listener);
      if (this.#watchers.size === 0) this.close();
    };
  }

  /** Tells of these at once: the store told of them by itself. */
  hear(ended: readonly string[]): void {
    for (const [listener, told] of this.#watchers) this.#tell(listener, told, ended);
  }

  /** Looks at once: something may have been missed. */
  lookNow(): void {
    if (this.#watchers.size > 0) this.#lookSoon(0);
  }

  close(): void {
    this.#watchers.clear();
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #lookSoon(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.setTimer(delayMs, () => void this.#look(), { keepProcess: false });
  }

  async #look(): Promise<void> {
    if (this.#looking) {
      this.#lookAgain = true;
      return;
    }
    this.#looking = true;
    let pauseMs = this.#options.periodMs;
    try {
      const ended = await this.#options.look();
      const present = new Set(ended);
      for (const told of this.#watchers.values()) {
        for (const id of told.keys()) if (!present.has(id)) told.delete(id);
      }
      this.hear(ended);
    } catch {
      // Whoever calls the engine is told what is wrong with it.
      pauseMs = Math.min(pauseMs, RETRY_MS);
    } finally {
      this.#looking = false;
      if (this.#watchers.size > 0) this.#lookSoon(this.#lookAgain ? 0 : pauseMs);
      this.#lookAgain = false;
    }
  }

  #tell(
    listener: (ids: readonly string[]) => void,
    told: Map<string, number>,
    ended: readonly string[],
  ): void {
    const nowMs = this.#options.clock.monotonicMs();
    const news = ended.filter((id) => nowMs - (told.get(id) ?? Number.NEGATIVE_INFINITY) >= REPEAT_MS);
    for (const id of news) told.set(id, nowMs);
    if (news.length > 0) listener(news);
  }
}
