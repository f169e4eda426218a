/** CPython's generator again, written another way: with big integers and the textbook's recurrences. */
export function numbers(seed: number): () => number {
  const mask = 0xffffffffn;
  const init = [19650218n];
  for (let i = 1n; i < 624n; i += 1n) {
    const last = init[Number(i) - 1] ?? 0n;
    init.push((1812433253n * (last ^ (last >> 30n)) + i) & mask);
  }
  let i = 1;
  const step = (factor: bigint, add: bigint) => {
    const last = init[i - 1] ?? 0n;
    init[i] = (((init[i] ?? 0n) ^ ((last ^ (last >> 30n)) * factor)) + add) & mask;
    i += 1;
    if (i === 624) {
      init[0] = init[623] ?? 0n;
      i = 1;
    }
  };
  for (let k = 0; k < 624; k += 1) step(1664525n, BigInt(seed));
  for (let k = 0; k < 623; k += 1) step(1566083941n, -BigInt(i));
  init[0] = 1n << 31n;
  const words = Int32Array.from(init, Number);
  let used = 624;
  const word = () => {
    if (used === 624) {
      used = 0;
      for (let k = 0; k < 624; k += 1) {
        const upper = (words[k] ?? 0) >>> 31;
        const lower = (words[(k + 1) % 624] ?? 0) & 0x7fffffff;
        const joined = upper * 0x80000000 + lower;
        words[k] = (words[(k + 397) % 624] ?? 0) ^ (joined >>> 1) ^ (joined % 2 === 1 ? -1727483681 : 0);
      }
    }
    let y = words[used] ?? 0;
    used += 1;
    y ^= y >>> 11;
    y ^= (y << 7) & -1658038656;
    y ^= (y << 15) & -272236544;
    y ^= y >>> 18;
    return y >>> 0;
  };
  return () => {
    const high = word() >>> 5;
    const low = word() >>> 6;
    return (high * 2 ** 26 + low) / 2 ** 53;
  };
}
