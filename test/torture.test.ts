import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { countUpdates, createResource } from '../packages/pawl/src/lab/torture/count.ts';
import type { RunResult } from '../packages/pawl/src/lab/torture/run.ts';
import type { TortureReport } from '../packages/pawl/src/lab/torture/torture.ts';
import { haveRedis } from '../packages/pawl/test/engines/redis-server.ts';

const PAWL = fileURLToPath(new URL('../packages/pawl/bin/pawl.js', import.meta.url));
const TIME_LIMIT_MS = 180_000;
/** So often the states of the same children are looked at before new ones are looked for. */
const LOOKS_AT_ONE_LIST = 25;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-torture-test-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function torture(...args: string[]): Promise<TortureReport & { readonly mostStops: number }> {
  const running = promisify(execFile)(process.execPath, [PAWL, 'torture', '--json', ...args]);
  const stops = new StopCounter(running.child.pid ?? 0);
  try {
    const { stdout } = await running;
    return { ...(JSON.parse(stdout) as TortureReport), mostStops: stops.most };
  } finally {
    stops.close();
  }
}

/** Looks how often the children of a process are found stopped after they ran. Linux only. */
class StopCounter {
  readonly #counts = new Map<string, number>();
  readonly #states = new Map<string, string>();
  readonly #timer: NodeJS.Timeout;
  #children: readonly string[] = [];
  #looks = 0;

  constructor(parent: number) {
    this.#timer = setInterval(() => this.#look(parent), 4);
  }

  /** Of the child that was stopped most often. */
  get most(): number {
    return Math.max(0, ...this.#counts.values());
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(parent: number): void {
    // To look at all that runs on the machine costs too much to do it each time.
    if (this.#looks % LOOKS_AT_ONE_LIST === 0) this.#children = childrenOf(parent);
    this.#looks += 1;
    for (const pid of this.#children) {
      const [state = ''] = statusOf(pid);
      if (state === 'T' && this.#states.get(pid) !== 'T') {
        this.#counts.set(pid, (this.#counts.get(pid) ?? 0) + 1);
      }
      this.#states.set(pid, state);
    }
  }
}

function childrenOf(parent: number): string[] {
  const pids = existsSync('/proc/self/stat') ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : [];
  return pids.filter((pid) => Number(statusOf(pid)[1]) === parent);
}

/** State and parent of a process; nothing where it has ended. */
function statusOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
  } catch {
    return [];
  }
}

/** What must be so whatever the lock did. */
function expectCountsAddUp(result: RunResult): void {
  const { updates, injuries } = result;
  expect(updates).toBeGreaterThan(0);
  expect(result.lost).toBe(updates - result.counter);
  // A worker that is killed after its commit has no time left to say so.
  const unsaid = updates - result.acknowledged;
  expect(unsaid).toBeGreaterThanOrEqual(0);
  expect(unsaid).toBeLessThanOrEqual(injuries.kills + 3);
  expect(result.wedgesMs).toHaveLength(injuries.stops + injuries.kills);
  expect(result.crashes).toEqual([]);
  for (const count of [injuries.stops, injuries.kills, injuries.throttles]) expect(count).toBeGreaterThan(0);
}

it(
  'S7, S8: the fence loses no update to processes that are stopped, killed and throttled, and the counts add up',
  async () => {
    const svg = join(folder, 'torture.svg');
    const { results, unmeasured, fencedOnesHeld, mostStops } = await torture(
      '--target',
      'sqlite',
      '--seconds',
      '5',
      '--svg',
      svg,
    );
    expect(unmeasured).toEqual([]);
    expect(fencedOnesHeld).toBe(true);
    expect(results.map(({ target, fenced }) => [target, fenced])).toEqual([
      ['sqlite', true],
      ['sqlite', false],
    ]);
    for (const result of results) {
      expectCountsAddUp(result);
      expect(result.injuries).toMatchObject({ cuts: 0, restarts: 0 });
    }
    // Who is throttled is stopped about twenty times in a row; who is only stopped or killed, once, or a few times where it was too fast.
    if (process.platform === 'linux') expect(mostStops).toBeGreaterThan(4);
    const [fenced, unfenced] = results;
    expect(fenced).toMatchObject({ lost: 0, lateWrites: 0 });
    expect(unfenced).toMatchObject({ refused: 0, refusedRaises: 0 });
    expect(readFileSync(svg, 'utf8')).toContain(`${fenced?.lost} of ${fenced?.updates}`);
  },
  TIME_LIMIT_MS,
);

describe('what is lost is counted at the resource', () => {
  /** Writes these values, one after the other, as workers do: to the counter and to the log. */
  function written(...values: number[]): string {
    const path = join(folder, `${values.join('-')}.db`);
    createResource(path);
    const db = new DatabaseSync(path);
    for (const value of values) {
      db.exec(`UPDATE counter SET value = ${value}; INSERT INTO effect VALUES (NULL, 'worker', ${value})`);
    }
    db.close();
    return path;
  }

  it.each([
    [
      'nothing, where each wrote over what it had read',
      [1, 2, 3],
      { updates: 3, counter: 3, lost: 0, lateWrites: 0 },
    ],
    ['all that a late write undid', [1, 2, 3, 4, 2, 3], { updates: 6, counter: 3, lost: 3, lateWrites: 1 }],
    ['one, where a write wiped a late one', [1, 2, 1, 3], { updates: 4, counter: 3, lost: 1, lateWrites: 2 }],
  ])('%s', (_what, values, count) => {
    expect(countUpdates(written(...values))).toEqual(count);
  });

  it('a counter that does not fit its log is no result', () => {
    const path = written(1, 2);
    const db = new DatabaseSync(path);
    db.exec('UPDATE counter SET value = 1');
    db.close();
    expect(() => countUpdates(path)).toThrow('The log ends at 2');
  });
});

describe.skipIf(!haveRedis())('on one Redis', () => {
  it(
    'S7, S8: the fence loses no update where connections are cut and the server is killed too; a peer suffers the same',
    async () => {
      const { results, unmeasured } = await torture('--target', 'redis,verrou', '--seconds', '1');
      expect(unmeasured).toEqual([]);
      expect(results.map(({ target, kind, fenced }) => [target, kind, fenced])).toEqual([
        ['redis', 'pawl', true],
        ['redis', 'pawl', false],
        ['verrou', 'peer', false],
      ]);
      for (const result of results) {
        expectCountsAddUp(result);
        expect(result.injuries.cuts).toBeGreaterThan(0);
        expect(result.injuries.restarts).toBeGreaterThan(0);
      }
      expect(results[0]).toMatchObject({ lost: 0, lateWrites: 0 });
    },
    TIME_LIMIT_MS,
  );
});
