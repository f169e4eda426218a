import type { Pending, Touch } from './grouping.ts';

/** What is under way, or has to wait for its turn. */
interface Blocked {
  readonly names: Set<string>;
  readonly requestKeys: Set<string>;
}

/**
 * Commands that wait to be decided. Several batches of them may be under way at once, but no two that touch a common lock or request, so
 * commands on one lock keep their order.
 */
export class CommandQueue<P extends Pending> {
  #waiting: P[] = [];
  readonly #batches = new Set<readonly P[]>();

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
    const batch = this.#batches.size === 0 ? this.#waiting.splice(0, limit) : this.#takeUnblocked(limit);
    if (batch.length > 0) this.#batches.add(batch);
    return batch;
  }

  /** A batch is through: what it touched is free again. */
  done(batch: readonly P[]): void {
    this.#batches.delete(batch);
  }

  has(item: P): boolean {
    return this.#waiting.includes(item);
  }

  /** Empties it. */
  drain(): P[] {
    return this.#waiting.splice(0);
  }

  #takeUnblocked(limit: number): P[] {
    const blocked: Blocked = { names: new Set(), requestKeys: new Set() };
    for (const batch of this.#batches) for (const { touch } of batch) block(blocked, touch);
    const batch: P[] = [];
    const skipped: P[] = [];
    let looked = 0;
    for (const item of this.#waiting) {
      if (batch.length >= limit) break;
      looked += 1;
      if (!isBlocked(blocked, item.touch)) {
        batch.push(item);
        continue;
      }
      // Later ones with the same lock have to wait behind it.
      block(blocked, item.touch);
      skipped.push(item);
    }
    if (batch.length > 0) this.#waiting = [...skipped, ...this.#waiting.slice(looked)];
    return batch;
  }
}

function block(blocked: Blocked, { names, requestKeys }: Touch): void {
  for (const name of names) blocked.names.add(name);
  for (const key of requestKeys) blocked.requestKeys.add(key);
}

function isBlocked(blocked: Blocked, { names, requestKeys }: Touch): boolean {
  return (
    names.some((name) => blocked.names.has(name)) || requestKeys.some((key) => blocked.requestKeys.has(key))
  );
}
