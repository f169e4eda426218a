import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

/** Everything random about a run, out of one seed (the generator is "mulberry32", by Tommy Ettinger). */
export class Chance {
  #state: number;

  /** @param seed a whole number from 0 to 2^32 - 1. */
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to 1. */
  share(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }

  /** A whole number from `least` up to but not including `below`. */
  from(least: number, below: number): number {
    return least + Math.floor(this.share() * (below - least));
  }

  /** Whether something of this probability happens. */
  happens(probability: number): boolean {
    return this.share() < probability;
  }

  pick<T>(choices: readonly T[]): T {
    if (choices.length === 0) throw new RangeError('There is nothing to pick from.');
    return choices[this.from(0, choices.length)] as T;
  }
}

/** Makes what Pawl draws by itself (ids, pauses between retries) come out of `chance` too, so that a run can be repeated. */
export function drawIdsFrom(chance: Chance): () => void {
  const original = {
    randomBytes: crypto.randomBytes,
    randomInt: crypto.randomInt,
    randomUUID: crypto.randomUUID,
  };
  const bytes = (size: number) => Buffer.from(Array.from({ length: size }, () => chance.from(0, 256)));
  Object.assign(crypto, {
    randomBytes: bytes,
    randomInt: (least: number, below?: number) =>
      below === undefined ? chance.from(0, least) : chance.from(least, below),
    randomUUID: () => bytes(16).toString('hex'),
  });
  syncBuiltinESMExports();
  return () => {
    Object.assign(crypto, original);
    syncBuiltinESMExports();
  };
}
