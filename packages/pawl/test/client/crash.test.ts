import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { open } from '../../src/client/open.ts';
import { sqliteEngine } from '../../src/engines/sqlite/index.ts';

const ROUNDS = 6;
const worker = fileURLToPath(new URL('./crash-worker.ts', import.meta.url));
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-crash-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What a killed process had said. */
interface Said {
  readonly granted: [name: string, token: bigint][];
  readonly releasing: Set<string>;
}

/** Lets the worker run until it was granted something, and for some time more, and kills it. */
async function runAndKill(path: string, forMs: number): Promise<Said> {
  const child = spawn(process.execPath, [worker, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  const started = new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk) => {
      text += chunk;
      resolve();
    });
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  try {
    await Promise.race([started, ended]);
    await new Promise((resolve) => setTimeout(resolve, forMs));
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
  const granted: [string, bigint][] = [];
  const releasing = new Set<string>();
  // A line that was cut off by the kill was not said.
  for (const line of text.slice(0, text.lastIndexOf('\n') + 1).split('\n')) {
    const [what, name = '', token = ''] = line.split(' ');
    if (what === 'granted') granted.push([name, BigInt(token)]);
    if (what === 'releasing') releasing.add(`${name} ${token}`);
  }
  return { granted, releasing };
}

it('S1, S9: a process killed while 32 clients lock: no token falls or repeats, no acknowledged grant is forgotten', async () => {
  const path = join(folder, 'locks.db');
  const last = new Map<string, bigint>();
  let grants = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const { granted, releasing } = await runAndKill(path, 100 + Math.random() * 400);
    grants += granted.length;
    for (const [name, token] of granted) {
      expect(token, `${name} in round ${round}`).toBeGreaterThan(last.get(name) ?? 0n);
      last.set(name, token);
    }
    const engine = await sqliteEngine({ path });
    const pawl = open(engine);
    for (const [name, token] of granted) {
      if (releasing.has(`${name} ${token}`)) continue;
      const { holders } = await pawl.inspect(name);
      expect(
        holders.map((holder) => holder.token),
        `${name} in round ${round}`,
      ).toEqual([token]);
    }
    // The killed holders' sessions last for minutes; the next round is not to wait for that.
    for await (const { name, holders } of pawl.list()) {
      for (const { token } of holders) {
        await pawl.breakLock(name, { token, reason: 'the round is over' });
        last.set(name, token > (last.get(name) ?? 0n) ? token : (last.get(name) ?? 0n));
      }
      // Whoever was let in by that belongs to a killed process as well.
      for (;;) {
        const [holder] = (await pawl.inspect(name)).holders;
        if (holder === undefined) break;
        expect(holder.token).toBeGreaterThan(last.get(name) ?? 0n);
        last.set(name, holder.token);
        await pawl.breakLock(name, { token: holder.token, reason: 'the round is over' });
      }
    }
    await pawl.close();
    await engine.close();
  }
  expect(grants).toBeGreaterThan(ROUNDS);
}, 60_000);
