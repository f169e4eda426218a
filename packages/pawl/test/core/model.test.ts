import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ConditionalWrite } from '../../src/core/write.ts';
import { Watcher } from './invariants.ts';
import { Player, type Step, step } from './steps.ts';
import { World, type WorldOptions } from './world.ts';

const STEPS = 100_000;
const RUNS = 300;

/** @returns how many commands were decided. */
function play(steps: readonly Step[], options: WorldOptions): number {
  const world = new World(options);
  const watcher = new Watcher(world);
  const player = new Player(world, watcher);
  for (const one of steps) player.play(one);
  player.settle();
  return world.decided;
}

const run = fc.record({
  steps: fc.array(step, { maxLength: 120, size: 'max' }),
  headWindow: fc.constantFrom(1, 2, 16),
});

describe('the core, whatever happens', () => {
  it('S1–S6, L1–L3: keeps its promises through 100,000 random commands, races, endings and delays', () => {
    let steps = 0;
    fc.assert(
      fc.property(run, (drawn) => {
        steps += play(drawn.steps, { headWindow: drawn.headWindow });
      }),
      { numRuns: RUNS },
    );
    expect(steps).toBeGreaterThanOrEqual(STEPS);
  }, 120_000);
});

/** Ways to get it wrong, each of which the same test must find. */
const mutations: [string, (write: ConditionalWrite) => ConditionalWrite][] = [
  ['no guard is checked', (write) => ({ ...write, guards: [] })],
  [
    'locks are not guarded',
    (write) => ({ ...write, guards: write.guards.filter(({ key }) => !key.startsWith('lock/')) }),
  ],
  ['sessions need not be alive', (write) => ({ ...write, alive: [] })],
  ['nothing is deleted', (write) => ({ ...write, deletes: [] })],
  [
    'waiters are not deleted',
    (write) => ({ ...write, deletes: write.deletes.filter((key) => !key.startsWith('wait/')) }),
  ],
  [
    'forced releases are not deleted',
    (write) => ({ ...write, deletes: write.deletes.filter((key) => !key.startsWith('break/')) }),
  ],
  [
    'waiters are not stored',
    (write) => ({ ...write, puts: write.puts.filter(({ key }) => !key.startsWith('wait/')) }),
  ],
  [
    'requests are not stored',
    (write) => ({ ...write, puts: write.puts.filter(({ key }) => !key.startsWith('req/')) }),
  ],
  [
    'every token is 7',
    (write) =>
      editLocks(write, (text) => text.replaceAll(/"slot":(\d+)(,"token":"\d+")?/g, '"slot":$1,"token":"7"')),
  ],
  ['every slot is 0', (write) => editLocks(write, (text) => text.replaceAll(/"slot":\d+/g, '"slot":0'))],
  [
    'waiters are miscounted',
    (write) => editLocks(write, (text) => text.replace(/"waiting":0/, '"waiting":1')),
  ],
  [
    'all are shared',
    (write) => editLocks(write, (text) => text.replaceAll('"mode":"exclusive"', '"mode":"shared"')),
  ],
];

function editLocks(write: ConditionalWrite, edit: (text: string) => string): ConditionalWrite {
  const puts = write.puts.map(({ key, value }) => ({
    key,
    value: key.startsWith('lock/') ? edit(value) : value,
  }));
  return { ...write, puts };
}

describe('the test of the core finds', () => {
  it.each(mutations)('%s', (_name, spoil) => {
    const found = fc.check(
      fc.property(run, (drawn) => void play(drawn.steps, { headWindow: drawn.headWindow, spoil })),
      // Always the same runs, since each defect is found by a few of them only.
      { numRuns: 150, endOnFailure: true, seed: 1 },
    );
    expect(found.failed).toBe(true);
  });
});
