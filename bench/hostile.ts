/**
 * What a client that behaves notices of one that does not: its 99th percentile while the server is attacked, against that without. The
 * attacker is a process of its own on the same machine, so it also takes processor time from both. Run nothing beside it.
 *
 *   node bench/hostile.ts [--seconds N]
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { connect } from '../packages/pawl/src/client/remote/connect.ts';
import { endProcess } from '../packages/pawl/test/engines/server-tools.ts';
import { ServerProcess } from '../packages/pawl/test/faults/server-process.ts';
import { type Contestant, TTL_MS } from './contestant.ts';
import { measureCycles } from './measure.ts';

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '5' } } });
const forMs = Number(values.seconds) * 1000;
const ATTACKER = fileURLToPath(new URL('attacker.ts', import.meta.url));
const WAYS = [
  'garbage',
  'ids used twice',
  'half frames',
  'frames of 100 MB',
  'no reading',
  'a flood of acquires',
  '10,000 connections',
];
/** The client at hand works on so many locks at once. */
const AT_ONCE = 8;
/** The goal: no more than so many times as long. */
const GOAL = 5;

const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-'));
const server = new ServerProcess(join(folder, 'pawl.db'));
try {
  await server.start();
  const client = await bystander(server.url);
  const quiet = await measureCycles(client, AT_ONCE, forMs);
  console.log(`without: ${quiet.perSecond.toFixed(0)} cycles/s, p99 ${quiet.p99Ms.toFixed(1)} ms`);
  for (const way of WAYS) {
    const attacker = spawn(process.execPath, ['--no-warnings', ATTACKER, way, server.url], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const { perSecond, p99Ms } = await measureCycles(client, AT_ONCE, forMs);
    await endProcess(attacker, 'SIGKILL');
    const ratio = p99Ms / quiet.p99Ms;
    console.log(
      `${way}: ${perSecond.toFixed(0)} cycles/s, p99 ${p99Ms.toFixed(1)} ms, ${ratio.toFixed(1)} times   goal <= ${GOAL}: ${ratio <= GOAL ? 'reached' : 'missed'}`,
    );
  }
  await client.close();
} finally {
  await server.kill();
  rmSync(folder, { recursive: true, force: true });
}

async function bystander(url: string): Promise<Awaited<ReturnType<Contestant['connect']>>> {
  const pawl = await connect(url);
  return {
    acquire: async (lock) => {
      const lease = await pawl.acquire(lock, { ttlMs: TTL_MS });
      return () => lease.release();
    },
    close: () => pawl.close(),
  };
}
