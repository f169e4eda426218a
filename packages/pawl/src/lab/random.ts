/**
 * The Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998), seeded and read as CPython's `random.Random` does, so that the
 * lab's figures can be checked against any Python.
 */
export class TwisterRandom {
  readonly #state = new Uint32Array(624);
  #index = 624;

  /** @param seed a whole number from 0 to 2^32 - 1. */
  constructor(seed: number) {
    this.#fill(19650218);
    // CPython seeds with an array of the number's 32-bit words; here it is one word.
    const state = this.#state;
    let i = 1;
    for (let k = 0; k < 624; k += 1) {
      state[i] = (at(state, i) ^ Math.imul(mix(at(state, i - 1)), 1664525)) + seed;
      i = next(state, i);
    }
    for (let k = 0; k < 623; k += 1) {
      state[i] = (at(state, i) ^ Math.imul(mix(at(state, i - 1)), 1566083941)) - i;
      i = next(state, i);
    }
    state[0] = 0x80000000;
  }

  /** A number from 0 up to 1, with 53 random bits. */
  random(): number {
    return ((this.#word() >>> 5) * 67108864 + (this.#word() >>> 6)) / 9007199254740992;
  }

  /** A number from the exponential distribution with this mean. */
  exponential(mean: number): number {
    return -Math.log(1 - this.random()) / (1 / mean);
  }

  #fill(seed: number): void {
    this.#state[0] = seed;
    for (let i = 1; i < 624; i += 1) this.#state[i] = Math.imul(1812433253, mix(at(this.#state, i - 1))) + i;
  }

  #word(): number {
    if (this.#index === 624) this.#twist();
    let y = at(this.#state, this.#index++);
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  #twist(): void {
    const state = this.#state;
    let word = at(state, 0);
    for (let i = 0; i < 624; i += 1) {
      const following = at(state, i === 623 ? 0 : i + 1);
      const y = (word & 0x80000000) | (following & 0x7fffffff);
      state[i] = at(state, i < 227 ? i + 397 : i - 227) ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
      word = following;
    }
    this.#index = 0;
  }
}

function at(state: Uint32Array, index: number): number {
  return state[index] ?? 0;
}

function mix(word: number): number {
  return word ^ (word >>> 30);
}

/** The seeding wraps from the last word to the second, carrying the last into the first. */
function next(state: Uint32Array, index: number): number {
  if (index < 623) return index + 1;
  state[0] = at(state, 623);
  return 1;
}
