import { type Pending, touchedKeys } from './grouping.ts';

/**
 * Commands that wait to be decided. Several batches of them may be under way at once, but no two that touch a common lock or request, so
 * commands on one lock keep their order.
 */
export class CommandQueue<P extends Pending> {
  #waiting: P[] = [];
  readonly #busy = new Set<string>();
  readonly #batches = new Map<readonly P[], readonly string[]>();

  get length(): number {
    return this.#waiting.length;
  }

  /** How many batches are under way. */
  get underWay(): number {
    return this.#batches.size;
  }

  add(item: P): void {
    this.#waiting.push(item);
  }

  /** These go first: they were tried already. */
  putBack(items: readonly P[]): void {
    this.#waiting.unshift(...items);
  }

  /** Takes the next `limit` commands that touch nothing that is under way; {@link done} has to follow. */
  take(limit: number): P[] {
    const blocked = new Set(this.#busy);
    const batch: P[] = [];
    const skipped: P[] = [];
    const keys: string[] = [];
    let looked = 0;
    for (const item of this.#waiting) {
      if (batch.length >= limit) break;
      looked += 1;
      const touched = touchedKeys(item);
      if (this.#busy.size === 0 || !touched.some((key) => blocked.has(key))) {
        batch.push(item);
        keys.push(...touched);
        continue;
      }
      // Later ones with the same lock have to wait behind it.
      for (const key of touched) blocked.add(key);
      skipped.push(item);
    }
    if (batch.length === 0) return batch;
    this.#waiting = [...skipped, ...this.#waiting.slice(looked)];
    for (const key of keys) this.#busy.add(key);
    this.#batches.set(batch, keys);
    return batch;
  }

  /** A batch is through: what it touched is free again. */
  done(batch: readonly P[]): void {
    for (const key of this.#batches.get(batch) ?? []) this.#busy.delete(key);
    this.#batches.delete(batch);
  }

  has(item: P): boolean {
    return this.#waiting.includes(item);
  }

  /** Empties it. */
  drain(): P[] {
    return this.#waiting.splice(0);
  }
}
