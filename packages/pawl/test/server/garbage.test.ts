import { describe, expect, it } from 'vitest';
import type { Pawl } from '../../src/client/pawl.ts';
import { majorCollection, minorCollection } from '../collections.ts';
import { client, running } from './setup.ts';

const AT_ONCE = 32;
const ROUNDS = 60;

async function cycles(pawl: Pawl, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    await Promise.all(
      Array.from({ length: AT_ONCE }, (_, i) => pawl.withLock(`own-${i}`, async () => undefined)),
    );
    if (round % 10 === 0) minorCollection();
  }
}

describe('a client and a server under load', () => {
  it('leave nothing of their cycles behind that small collections do not collect', async () => {
    const { server } = await running();
    const pawl = await client(server.url);
    // The first are compiled, and what they make grows old.
    await cycles(pawl, 3 * ROUNDS);
    // Whatever else this process does just then is counted too, so the best of a few is what tells.
    const left: number[] = [];
    for (let trial = 0; trial < 12; trial += 1) left.push(await leftBy(pawl));
    expect(Math.min(...left)).toBeLessThan(3500);
  });
});

/** Bytes that each cycle leaves behind. */
async function leftBy(pawl: Pawl): Promise<number> {
  majorCollection();
  const before = process.memoryUsage().heapUsed;
  await cycles(pawl, ROUNDS);
  minorCollection();
  return (process.memoryUsage().heapUsed - before) / (ROUNDS * AT_ONCE);
}
