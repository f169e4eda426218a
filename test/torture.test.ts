import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import type { RunResult } from '../torture/run.ts';

const MAIN = fileURLToPath(new URL('../torture/main.ts', import.meta.url));

it('S7, S8: the fence loses no update to processes that are stopped and killed, and the counts add up', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-torture-test-'));
  try {
    const svg = join(folder, 'torture.svg');
    const args = ['--no-warnings', MAIN, '--only', 'sqlite', '--seconds', '5', '--json', '--svg', svg];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const { results, unmeasured } = JSON.parse(stdout) as { results: RunResult[]; unmeasured: unknown[] };
    expect(unmeasured).toEqual([]);
    expect(results.map(({ target, fenced }) => [target, fenced])).toEqual([
      ['sqlite', true],
      ['sqlite', false],
    ]);
    for (const result of results) {
      expect(result.updates).toBeGreaterThan(0);
      expect(result.lost).toBe(result.updates - result.counter);
      // A worker that is killed after its commit has no time left to say so.
      const unsaid = result.updates - result.acknowledged;
      expect(unsaid).toBeGreaterThanOrEqual(0);
      expect(unsaid).toBeLessThanOrEqual(result.injuries.kills + 3);
      expect(result.injuries).toMatchObject({ cuts: 0, restarts: 0 });
      expect(result.wedgesMs).toHaveLength(result.injuries.stops + result.injuries.kills);
      expect(result.crashes).toEqual([]);
    }
    const [fenced, unfenced] = results;
    expect(fenced).toMatchObject({ lost: 0, lateWrites: 0 });
    expect(fenced?.injuries.stops).toBeGreaterThan(0);
    expect(fenced?.injuries.kills).toBeGreaterThan(0);
    expect(unfenced).toMatchObject({ refused: 0, refusedRaises: 0 });
    expect(readFileSync(svg, 'utf8')).toContain(`${fenced?.lost} of ${fenced?.updates}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 120_000);
