/**
 * A client and a server in a process of their own, where nothing else makes garbage. Prints how many bytes each cycle leaves behind
 * that small collections do not collect.
 */
import { connect } from '../../src/client/remote/connect.ts';
import { memoryEngine } from '../../src/engines/memory/index.ts';
import { serve } from '../../src/server/index.ts';
import { majorCollection, minorCollection } from '../collections.ts';

const AT_ONCE = 32;
const ROUNDS = 60;
const engine = memoryEngine();
const server = await serve({ engine, port: 0, log: () => {} });
const pawl = await connect(server.url);

async function cycles(rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    await Promise.all(
      Array.from({ length: AT_ONCE }, (_, i) => pawl.withLock(`own-${i}`, async () => undefined)),
    );
    if (round % 10 === 0) minorCollection();
  }
}

/** Bytes that each cycle leaves behind. */
async function left(): Promise<number> {
  majorCollection();
  const before = process.memoryUsage().heapUsed;
  await cycles(ROUNDS);
  minorCollection();
  return (process.memoryUsage().heapUsed - before) / (ROUNDS * AT_ONCE);
}

// The first are compiled, and what they make grows old.
await cycles(3 * ROUNDS);
const trials: number[] = [];
for (let trial = 0; trial < 5; trial += 1) trials.push(await left());
process.stdout.write(JSON.stringify(trials));
await pawl.close();
await server.close();
await engine.close();
