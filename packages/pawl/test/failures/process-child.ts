import { writeSync } from 'node:fs';
import { open } from '../../src/client/open.ts';
import { memoryEngine } from '../../src/engines/memory/index.ts';
import { sqliteEngine } from '../../src/engines/sqlite/index.ts';
import { MemoryFaults } from '../../src/testing/index.ts';

/** Programs that users might write, without handlers for what nobody told them of; `argv[2]` says which. */

const say = (text: string) => void writeSync(1, `${text}\n`);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const programs: Record<string, () => Promise<void>> = {
  /** The lease is lost while the work goes on; the program looks only at what the helper comes to. */
  async lost() {
    const faults = new MemoryFaults();
    const pawl = open(memoryEngine({ faults }));
    const error = await pawl
      .withLock('x', { ttlMs: 300 }, async (lease) => {
        lease.signal.addEventListener('abort', () => say(`aborted ${lease.signal.reason.code}`));
        faults.unreachable = true;
        await pause(800);
        say('work done');
      })
      .catch((reason) => reason);
    say(`rejected ${error.code}`);
    process.exitCode = 7;
  },

  /** The answer to a renewal comes when the work is over. */
  async late() {
    const faults = new MemoryFaults();
    const pawl = open(memoryEngine({ faults }));
    faults.onCall = (method) => (method === 'keepAlive' ? { replyDelayMs: 300 } : undefined);
    await pawl.withLock('x', { ttlMs: 1500 }, () => pause(650));
    const renewals = faults.calls.get('keepAlive') ?? 0;
    say('released');
    process.on('exit', () => say(`renewed since: ${(faults.calls.get('keepAlive') ?? 0) - renewals}`));
  },

  /** Holds three locks for long, and gives them back when it is told to end. */
  async stop() {
    const engine = await sqliteEngine({ path: process.argv[3] ?? '' });
    const pawl = open(engine);
    for (const name of ['x', 'y', 'z']) await pawl.acquire(name, { ttlMs: 600_000 });
    const busy = setInterval(() => {}, 1000);
    process.on('SIGTERM', async () => {
      clearInterval(busy);
      await pawl.close();
      await engine.close();
      say('closed');
    });
    say('ready');
  },
};

await programs[process.argv[2] ?? '']?.();
