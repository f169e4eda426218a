/**
 * L1: for how long a holder that was killed keeps the next one waiting, against its TTL and the 250 ms that a sweep may take. Real
 * `pawl run` processes on one SQLite file. Run nothing beside it.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from '../packages/pawl/src/client/open.ts';
import { sqliteEngine } from '../packages/pawl/src/engines/sqlite/index.ts';

const ROUNDS = 10;
const TTL_MS = 1000;
const SWEEP_MS = 250;

const pawlCommand = fileURLToPath(new URL('../packages/pawl/bin/pawl.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-'));
const path = join(folder, 'pawl.db');
const engine = await sqliteEngine({ path });
const pawl = open(engine);

const delaysMs: number[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  const args = ['run', 'x', '--db', path, '--ttl', `${TTL_MS}ms`, '--', 'sleep', '5'];
  const holder = spawn(process.execPath, [pawlCommand, ...args], { stdio: 'ignore' });
  for await (const { holders } of pawl.watch('x', { everyMs: 10 })) if (holders.length > 0) break;
  const waiting = pawl.acquire('x', { ttlMs: 60_000 });
  // Killed at different moments between two renewals.
  await new Promise((resolve) => setTimeout(resolve, 400 + (round * TTL_MS) / 3 / ROUNDS));
  holder.kill('SIGKILL');
  const killedAt = performance.now();
  const lease = await waiting;
  delaysMs.push(performance.now() - killedAt);
  await lease.release();
}
await pawl.close();
await engine.close();
rmSync(folder, { recursive: true, force: true });

const worst = Math.max(...delaysMs);
console.log(
  `delays after ${ROUNDS} kills, TTL ${TTL_MS} ms: ${delaysMs.map((ms) => ms.toFixed(0)).join(' ')} ms`,
);
console.log(`worst ${worst.toFixed(0)} ms (to reach: at most ${TTL_MS + SWEEP_MS} ms)`);
process.exitCode = worst <= TTL_MS + SWEEP_MS ? 0 : 1;
