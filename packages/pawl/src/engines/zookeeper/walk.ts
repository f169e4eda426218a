import type { Entry } from '../engine.ts';
import { byteOrder, type Child, folderOfPrefix, inOrder } from './keys.ts';
import { type View, Wanted } from './view.ts';

/** Keys to find, in the order of their bytes. */
export interface Range {
  readonly prefix: string;
  readonly limit: number;
  readonly after?: string | undefined;
}

/** A part of a long row is full as a rule; how many of its entries to count on before it was read. */
const PART_ENTRIES = 50;

/** Finds the entries of a range in what was read, and what else has to be read before all are found. */
export class Walk {
  readonly entries: Entry[] = [];
  /** Empty where the entries are all there are. */
  readonly missing = new Wanted();
  /** All that this walk looks at. */
  readonly used = new Wanted();
  readonly #view: View;
  readonly #range: Range;
  readonly #enough: number;
  #expected = 0;

  /** @param spare so many entries beyond the limit are wanted too, if others are: for the next walk. */
  constructor(top: string, view: View, range: Range, spare: number) {
    this.#view = view;
    this.#range = range;
    this.#enough = range.limit + spare;
    const { path, key } = folderOfPrefix(top, range.prefix);
    this.#folder(path, key, 1);
    if (this.missing.size === 0) this.entries.splice(range.limit);
  }

  /** @param count so many entries it counts for while it was not read. */
  #folder(path: string, key: string, count: number): void {
    this.used.children(path);
    const names = this.#view.children(path);
    if (names === undefined) {
      this.missing.children(path);
      this.#expected += count;
      return;
    }
    for (const child of inOrder(key, names ?? [])) {
      if (this.#expected >= this.#enough) return;
      if (this.#wants(child)) this.#child(`${path}/${child.name}`, child);
    }
  }

  #child(path: string, { kind, key }: Child): void {
    if (kind !== 'entry') {
      this.#folder(path, key, kind === 'part' ? PART_ENTRIES : 1);
      return;
    }
    const entry = this.#view.entry(path, key);
    // What was there and is not any more counts for nothing.
    if (entry === null) return;
    this.#expected += 1;
    this.used.data(path);
    if (entry !== undefined) this.entries.push(entry);
    // Spare entries are read along, not for their own sake.
    else if (this.#expected <= this.#range.limit || this.missing.size > 0) this.missing.data(path);
  }

  #wants({ kind, key }: Child): boolean {
    const { prefix, after } = this.#range;
    if (kind === 'entry') return key.startsWith(prefix) && (after === undefined || byteOrder(key, after) > 0);
    if (!key.startsWith(prefix) && !prefix.startsWith(key)) return false;
    return after === undefined || after.startsWith(key) || byteOrder(key, after) > 0;
  }
}
