import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkLinearizable, type Operation } from '../../src/testing/index.ts';
import { CoreRun, type Shape } from './core-run.ts';
import { steps } from './core-steps.ts';
import { CORRUPTIONS } from './corruptions.ts';

const SHAPES: readonly Shape[] = ['readers and writers', 'several locks', 'lock-delay', 'slots', 'barging'];

function answer(operation: Operation): string {
  if (operation.kind === 'end') return 'end';
  const { kind, reply } = operation;
  const waited = kind === 'acquire' && operation.waits === true ? ' after waiting' : '';
  return `${kind} ${typeof reply === 'bigint' ? 'granted' : reply}${waited}`;
}

/** Which wrong answers there was a place for. */
const found = new Set<string>();

describe('checkLinearizable of what the core answers', () => {
  it.each(SHAPES)('accepts it, seen with delays and losses: %s', (shape) => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(steps, fc.constantFrom(3, 25), (all, delayMs) => {
        const { operations } = new CoreRun({ shape, delayMs, losses: true }, all);
        for (const each of operations) seen.add(answer(each));
        expect(checkLinearizable(operations).map(({ message }) => message)).toEqual([]);
      }),
      { numRuns: 25 },
    );
    expect([...seen]).toEqual(
      expect.arrayContaining([
        'acquire granted',
        'acquire granted after waiting',
        'acquire refused',
        'acquire refused after waiting',
        'acquire unknown',
        'release released',
        'release notHeld',
        'release unknown',
        'end',
      ]),
    );
  });

  it.each(SHAPES)('S1–S4, S6: refuses each single wrong answer: %s', (shape) => {
    const fitting = CORRUPTIONS.filter(({ shapes }) => shapes.includes(shape));
    fc.assert(
      fc.property(steps, (all) => {
        const run = new CoreRun({ shape, delayMs: 3, losses: false }, all);
        for (const { promise, what, corrupt } of fitting) {
          const corrupted = corrupt(run, shape);
          if (corrupted === undefined) continue;
          found.add(what);
          const [contradiction] = checkLinearizable(corrupted.operations, { maxStates: 20_000 });
          const { placed = [], unplaced = [] } = contradiction ?? {};
          expect([...placed, ...unplaced], `${promise}: ${what}`).toContain(corrupted.wrong);
        }
      }),
      { numRuns: 20, endOnFailure: true },
    );
  });

  it('had a place for each of them', () => {
    expect(CORRUPTIONS.map(({ what }) => what).filter((what) => !found.has(what))).toEqual([]);
  });
});
