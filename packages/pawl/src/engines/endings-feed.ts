import type { Clock, Timer } from '../clock.ts';

/** A listener is told again of a session that was not forgotten, but not more often than this, in ms. */
const REPEAT_MS = 1000;

export interface EndingsFeedOptions {
  readonly clock: Clock;
  /** How often to look, in ms. */
  readonly periodMs: number;
  /** Ends sessions whose time is up. @returns all that have ended and were not forgotten. */
  readonly look: () => Promise<readonly string[]>;
}

/** Tells of ended sessions, for stores that do not tell by themselves: looks again and again while anybody watches. */
export class EndingsFeed {
  readonly #options: EndingsFeedOptions;
  readonly #watchers = new Map<(ids: readonly string[]) => void, Map<string, number>>();
  #timer: Timer | undefined;
  #looking = false;

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
    if (this.#looking) return;
    this.#looking = true;
    try {
      const ended = await this.#options.look();
      for (const [listener, told] of this.#watchers) this.#tell(listener, told, ended);
    } catch {
      // The next look comes soon; whoever calls the engine is told what is wrong with it.
    } finally {
      this.#looking = false;
      if (this.#watchers.size > 0) this.#lookSoon(this.#options.periodMs);
    }
  }

  #tell(
    listener: (ids: readonly string[]) => void,
    told: Map<string, number>,
    ended: readonly string[],
  ): void {
    const nowMs = this.#options.clock.monotonicMs();
    const present = new Set(ended);
    for (const id of told.keys()) if (!present.has(id)) told.delete(id);
    const news = ended.filter((id) => nowMs - (told.get(id) ?? Number.NEGATIVE_INFINITY) >= REPEAT_MS);
    for (const id of news) told.set(id, nowMs);
    if (news.length > 0) listener(news);
  }
}
