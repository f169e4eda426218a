import type { Entry, ReadQuery, ReadResult } from '../engine.ts';
import { unavailable } from './connection.ts';
import { Floor } from './floor.ts';
import type { Guards } from './guards.ts';
import type { Keeper } from './keeper.ts';
import { pathOfKey } from './keys.ts';
import { guardOf, type Layout } from './layout.ts';
import { View, Wanted } from './view.ts';
import { type Range, Walk } from './walk.ts';

/** So often a snapshot is taken anew because it turned out that more belongs to it. */
const ROUNDS = 50;
/** So many entries beyond a range's limit are read, since its first ones are about to go. */
const SPARE = 8;
/** Of so many ranges it is remembered which nodes they were made of. */
const REMEMBERED = 512;
/** So many nodes are read at a time where they need not be of one snapshot. */
const PAGE = 1000;

export interface ReadingOptions {
  readonly keeper: Keeper;
  readonly layout: Layout;
  readonly guards: Guards;
  readonly onFloor: (floor: Floor) => void;
}

/** Reads entries. */
export class Reading {
  readonly #options: ReadingOptions;
  /** By prefix, what the range was made of last time: most likely that is what has to be read this time. */
  readonly #ranges = new Map<string, Wanted>();

  constructor(options: ReadingOptions) {
    this.#options = options;
  }

  /**
   * Only the server's answer to one request is one snapshot, and which nodes a range is made of is only known when its folders have been
   * read. So all is read again with what was found missing, until nothing is.
   */
  async read(query: ReadQuery): Promise<ReadResult> {
    const { layout } = this.#options;
    const wanted = new Wanted();
    const places = query.keys.map((key) => ({ key, path: pathOfKey(layout.keys, key), guard: guardOf(key) }));
    for (const { path, guard } of places) {
      wanted.data(path);
      wanted.data(layout.guard(guard));
    }
    for (const { prefix } of query.ranges) {
      const last = this.#ranges.get(prefix);
      if (last !== undefined) wanted.add(last);
    }
    for (let round = 0; round < ROUNDS; round += 1) {
      const view = new View();
      await this.#look(wanted, view);
      const walks = query.ranges.map((range) => new Walk(layout.keys, view, range, SPARE));
      const missing = walks.filter((walk) => walk.missing.size > 0);
      for (const walk of missing) wanted.add(walk.missing);
      if (missing.length > 0) continue;
      for (const [i, walk] of walks.entries()) this.#remember(query.ranges[i]?.prefix ?? '', walk.used);
      const entries = new Map<string, Entry>();
      for (const { key, path, guard } of places) {
        const entry = view.entry(path, key);
        if (entry != null) entries.set(key, entry);
        const dataVersion = view.dataVersion(layout.guard(guard));
        if (dataVersion != null) this.#options.guards.learn(guard, dataVersion, key, entry?.version ?? null);
      }
      return { entries, ranges: walks.map((walk) => walk.entries) };
    }
    throw unavailable('what was to be read changed all the time', 'definite');
  }

  /** Reads entries that need not be of one snapshot. */
  async list(range: Range): Promise<readonly Entry[]> {
    const view = new View();
    for (;;) {
      const { entries, missing } = new Walk(this.#options.layout.keys, view, range, 0);
      if (missing.size === 0) return entries;
      while (missing.size > 0) await this.#look(missing.take(PAGE), view);
    }
  }

  async #look(wanted: Wanted, view: View): Promise<void> {
    const { keeper, layout, onFloor } = this.#options;
    const all = new Wanted();
    all.data(layout.floor);
    all.add(wanted);
    const answers = all.answers((await keeper.multiRead(all.operations())).results);
    const floor = new Floor(layout, answers.get(`d${layout.floor}`));
    onFloor(floor);
    view.add(answers, floor);
  }

  #remember(prefix: string, used: Wanted): void {
    this.#ranges.delete(prefix);
    this.#ranges.set(prefix, used);
    for (const oldest of this.#ranges.keys()) {
      if (this.#ranges.size <= REMEMBERED) break;
      this.#ranges.delete(oldest);
    }
  }
}
