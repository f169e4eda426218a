import { nameOfKey } from '../../packages/pawl/src/core/names.ts';
import { decodeLock } from '../../packages/pawl/src/core/records.ts';
import type { MemoryStore } from '../../packages/pawl/src/testing/index.ts';
import { Violation } from './timeline.ts';

/** Watches the store after every step: what it says about locks must never break a promise, whatever clients believe. */
export class StoreWatcher {
  readonly #store: MemoryStore;
  /** The highest token seen in a holder's hands, by lock and slot; shared runs have one for all their slots. */
  readonly #highest = new Map<string, bigint>();
  readonly #seen = new Set<string>();

  constructor(store: MemoryStore) {
    this.#store = store;
  }

  /** @throws Violation */
  check(): void {
    for (const { key, value, version } of this.#store.list('lock/', 1000)) {
      const name = nameOfKey(key);
      const { holders, permits } = decodeLock(key, value, version);
      const exclusive = holders.filter(({ mode }) => mode === 'exclusive');
      if (permits === null && exclusive.length > 0 && holders.length > 1) {
        throw new Violation(`S2: "${name}" has ${holders.length} holders, one of them exclusive`);
      }
      if (permits !== null && holders.length > permits) {
        throw new Violation(`S2: "${name}" has ${holders.length} holders of ${permits} permits`);
      }
      for (const { session, request, slot, token = 0n, mode } of holders) {
        const sequence = permits === null ? name : `${name} ${slot}`;
        // By grant: a hand-over keeps its token, and a shared run has one for all.
        const grant = `${sequence} ${token}`;
        const highest = this.#highest.get(sequence) ?? 0n;
        if (token < highest)
          throw new Violation(
            `S1: "${sequence}" granted ${token} after ${highest} (${mode}, ${session}/${request})`,
          );
        this.#highest.set(sequence, token);
        this.#seen.add(grant);
      }
    }
  }

  /** What is in the store, for whoever has to find out why. */
  describe(): string {
    const entries = ['lock/', 'wait/', 'req/'].flatMap((prefix) => this.#store.list(prefix, 20));
    return entries.map(({ key, value, version }) => `  ${key} @${version} ${value}`).join('\n');
  }

  /** How many grants were seen in the store. */
  get grants(): number {
    return this.#seen.size;
  }

  /** Whether the store says that this grant is in force, and its session is alive. */
  holds(name: string, token: bigint, nowMs: number): boolean {
    for (const { key, value, version } of this.#store.list('lock/', 1000)) {
      if (nameOfKey(key) !== name) continue;
      const { holders } = decodeLock(key, value, version);
      return holders.some(
        (holder) => holder.token === token && !holder.ghost && this.#store.isLive(holder.session, nowMs),
      );
    }
    return false;
  }
}
