import type { Keeper } from './keeper.ts';
import { foldersAbove } from './keys.ts';
import type { Layout } from './layout.ts';
import { CODE, NODE } from './protocol.ts';

/** So many folders are remembered to be there. */
const REMEMBERED = 10_000;
const EMPTY = Buffer.alloc(0);

/** Makes the folders that entries stand in. ZooKeeper removes them by itself when they have been empty for a while. */
export class Folders {
  readonly #keeper: Keeper;
  readonly #layout: Layout;
  readonly #there = new Set<string>();

  constructor(keeper: Keeper, layout: Layout) {
    this.#keeper = keeper;
    this.#layout = layout;
  }

  /**
   * Sends off what it takes for a node to be made at `path`. It is done before whatever is sent next; where it fails, that fails as well.
   */
  prepare(path: string): void {
    for (const folder of foldersAbove(this.#layout.keys, path)) {
      if (this.#there.has(folder)) continue;
      this.#there.add(folder);
      const create = this.#layout.create(folder, EMPTY, NODE.container);
      this.#keeper.operate(create, CODE.nodeExists).catch(() => this.#there.delete(folder));
    }
    for (const oldest of this.#there) {
      if (this.#there.size <= REMEMBERED) break;
      this.#there.delete(oldest);
    }
  }

  /** Forgets that the folders above `path` are there: they were removed. */
  forget(path: string): void {
    for (const folder of foldersAbove(this.#layout.keys, path)) this.#there.delete(folder);
  }
}
