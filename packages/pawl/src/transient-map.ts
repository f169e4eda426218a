/** With fewer insertions than this it is not worth making a new map. */
const FEWEST_INSERTIONS = 32;
/** To copy more entries than this takes longer than it saves. */
const MOST_ENTRIES = 1000;

/**
 * A map of which entries come and go all the time, such as of requests under way.
 *
 * A `Map` of V8's makes a new table every so many insertions, and its old table keeps a reference to the new one. Once a table has grown old
 * enough to be collected seldom only, all that follow it are kept with it, and so is whatever was in them while it was replaced: of a server under
 * load nearly all that it ever makes, until the next collection of everything. Here the whole map is replaced instead, half of which is
 * gone, and a new one is not referred to by the old.
 *
 * An iteration sees what was there as it began, without what was inserted since.
 */
export class TransientMap<K, V> {
  #map = new Map<K, V>();
  /** Since this map was made. */
  #insertions = 0;

  get size(): number {
    return this.#map.size;
  }

  has(key: K): boolean {
    return this.#map.has(key);
  }

  get(key: K): V | undefined {
    return this.#map.get(key);
  }

  set(key: K, value: V): this {
    if (this.#insertions >= FEWEST_INSERTIONS && this.#insertions >= 2 * this.#map.size) this.#replace();
    this.#insertions += 1;
    this.#map.set(key, value);
    return this;
  }

  /** @returns whether it was there. */
  delete(key: K): boolean {
    return this.#map.delete(key);
  }

  clear(): void {
    this.#map = new Map();
    this.#insertions = 0;
  }

  keys(): MapIterator<K> {
    return this.#map.keys();
  }

  values(): MapIterator<V> {
    return this.#map.values();
  }

  #replace(): void {
    if (this.#map.size > MOST_ENTRIES) return;
    this.#map = new Map(this.#map);
    this.#insertions = this.#map.size;
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.#map[Symbol.iterator]();
  }
}
