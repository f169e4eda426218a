import type { Clock } from '../../clock.ts';
import { EndingsFeed } from '../endings-feed.ts';
import { type Keeper, refused } from './keeper.ts';
import type { Layout } from './layout.ts';
import { childrenOperation, EVENT } from './protocol.ts';

/** How often all sessions are looked at, in ms: the watch tells at once, this is for what it missed and for what was not yet forgotten. */
const LOOK_PERIOD_MS = 5000;

/** Tells of sessions that have ended. */
export class Endings {
  readonly #keeper: Keeper;
  readonly #layout: Layout;
  readonly #feed: EndingsFeed;
  #watchers = 0;
  #stopWatch: (() => void) | undefined;

  /** @param ready resolves when the nodes are there. */
  constructor(keeper: Keeper, layout: Layout, clock: Clock, ready: () => Promise<void>) {
    this.#keeper = keeper;
    this.#layout = layout;
    const look = async () => {
      await ready();
      return this.#look();
    };
    this.#feed = new EndingsFeed({ clock, periodMs: LOOK_PERIOD_MS, look });
  }

  watch(listener: (ids: readonly string[]) => void): () => void {
    this.#watchers += 1;
    this.#stopWatch ??= this.#keeper.watch({
      path: this.#layout.sessions,
      onEvent: (type, path) => {
        const id = path.slice(this.#layout.sessions.length + 1);
        if (type === EVENT.deleted && id !== '') this.#feed.hear([id]);
      },
      onForce: () => this.#feed.lookNow(),
    }).stop;
    const stop = this.#feed.watch(listener);
    let stopped = false;
    return () => {
      if (stopped) return;
      stopped = true;
      stop();
      this.#watchers -= 1;
      if (this.#watchers > 0) return;
      this.#stopWatch?.();
      this.#stopWatch = undefined;
    };
  }

  close(): void {
    this.#feed.close();
  }

  async #look(): Promise<string[]> {
    const paths = [this.#layout.opened, this.#layout.sessions];
    const [opened, alive] = (await this.#keeper.multiRead(paths.map(childrenOperation))).results;
    if (opened?.children === undefined || alive?.children === undefined) throw refused(opened?.code ?? 0);
    const living = new Set(alive.children);
    return opened.children.filter((id) => !living.has(id));
  }
}
