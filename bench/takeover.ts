/**
 * L1: how long a holder that was killed keeps the lock from the next one, on real processes: `pawl run` with its command,
 * both ended by SIGKILL at a random moment of a renewal's turn. Measured until the next one's command runs, its start included.
 * Run nothing beside it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { open } from '../packages/pawl/src/client/open.ts';
import { sqliteEngine } from '../packages/pawl/src/engines/sqlite/index.ts';

const TTLS_MS = [1000, 2000, 5000];
const ROUNDS = 5;
const SWEEP_MS = 250;
const PAWL = fileURLToPath(new URL('../packages/pawl/bin/pawl.js', import.meta.url));

const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-'));
const path = join(folder, 'pawl.db');
const engine = await sqliteEngine({ path });
const pawl = open(engine);
const running = new Set<ChildProcess>();
const groups = new Set<number>();

/** Starts `pawl run`; resolves with the process id of its command once that runs. */
function start(lock: string, ttlMs: number): { child: ChildProcess; runs: Promise<number> } {
  const command = ['sh', '-c', 'echo $$; exec sleep 60'];
  const args = [PAWL, 'run', lock, '--ttl', `${ttlMs}`, '--db', path, '--', ...command];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  running.add(child);
  const runs = once(child.stdout, 'data').then(([data]) => {
    groups.add(Number(data));
    return Number(data);
  });
  return { child, runs };
}

async function end(child: ChildProcess, group: number): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  process.kill(-group, 'SIGKILL');
  running.delete(child);
  groups.delete(group);
  await ended;
}

async function takeover(lock: string, ttlMs: number): Promise<number> {
  const holder = start(lock, ttlMs);
  const holding = await holder.runs;
  const next = start(lock, ttlMs);
  while ((await pawl.inspect(lock)).waiting === 0) await sleep(20);
  await sleep(randomInt(Math.floor(ttlMs / 3)));
  const killedAt = performance.now();
  void end(holder.child, holding);
  const taken = await next.runs;
  const tookMs = performance.now() - killedAt;
  await end(next.child, taken);
  return tookMs;
}

let late = 0;
try {
  for (const ttlMs of TTLS_MS) {
    const limitMs = ttlMs + SWEEP_MS;
    const tookMs: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) tookMs.push(await takeover(`${ttlMs}/${round}`, ttlMs));
    late += tookMs.filter((each) => each > limitMs).length;
    const each = tookMs.map((ms) => ms.toFixed(0)).join(', ');
    console.log(`TTL ${ttlMs} ms: taken over after ${each} ms (to reach: at most ${limitMs})`);
  }
} finally {
  for (const child of running) child.kill('SIGKILL');
  for (const group of groups) process.kill(-group, 'SIGKILL');
  await pawl.close();
  await engine.close();
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = late === 0 ? 0 : 1;
