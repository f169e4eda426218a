import type { Version } from '../engine.ts';

/** So many keys of each guard are remembered. */
const KEYS_EACH = 64;

interface Known {
  dataVersion: number;
  /** The keys' versions while the guard was at `dataVersion`; `null` for absent. */
  readonly keys: Map<string, Version | null>;
}

/**
 * What is known of the guards. ZooKeeper can make a write depend on a node's data version only, which begins anew when the node is made
 * again; so every write also counts up the guards of its keys, which are never deleted, and a key is at the version it was read at
 * as long as its guard is. A guard serves many keys: that it has moved on proves nothing, and the key is read again.
 */
export class Guards {
  readonly #known = new Map<number, Known>();

  /** The guard's data version, if it is known. */
  dataVersion(guard: number): number | undefined {
    return this.#known.get(guard)?.dataVersion;
  }

  /** The version of a key at its guard's known data version; `null` for absent, `undefined` for unknown. */
  version(guard: number, key: string): Version | null | undefined {
    return this.#known.get(guard)?.keys.get(key);
  }

  /** Learns what was read from one snapshot. */
  learn(guard: number, dataVersion: number, key: string, version: Version | null): void {
    const known = this.#at(guard, dataVersion, false);
    if (known !== undefined) remember(known, key, version);
  }

  /** Learns of a write that took the guard to `dataVersion`. */
  changed(guard: number, dataVersion: number, changes: ReadonlyMap<string, Version | null>): void {
    const known = this.#at(guard, dataVersion, true);
    if (known !== undefined) for (const [key, version] of changes) remember(known, key, version);
  }

  /** @param mine whether the one write that led to `dataVersion` is known: then the other keys are as they were. */
  #at(guard: number, dataVersion: number, mine: boolean): Known | undefined {
    const known = this.#known.get(guard);
    // A data version counts on from the lowest number after the highest.
    const ahead = known === undefined ? undefined : (dataVersion - known.dataVersion) | 0;
    if (known !== undefined && ahead !== undefined) {
      if (ahead < 0) return undefined;
      if (ahead === 0) return known;
      if (ahead === 1 && mine) {
        known.dataVersion = dataVersion;
        return known;
      }
    }
    const fresh = { dataVersion, keys: new Map<string, Version | null>() };
    this.#known.set(guard, fresh);
    return fresh;
  }
}

function remember({ keys }: Known, key: string, version: Version | null): void {
  keys.delete(key);
  keys.set(key, version);
  for (const oldest of keys.keys()) {
    if (keys.size <= KEYS_EACH) break;
    keys.delete(oldest);
  }
}
