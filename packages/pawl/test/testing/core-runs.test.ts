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

/** Always the same ones, so that what is to be found in them is there every time. */
const SAMPLE = fc.sample(steps, { numRuns: 40, seed: 1 });

describe('checkLinearizable of what the core answers', () => {
  it.each(SHAPES)('accepts it, seen with delays and losses: %s', (shape) => {
    fc.assert(
      fc.property(steps, fc.constantFrom(3, 25), (all, delayMs) => {
        const { operations } = new CoreRun({ shape, delayMs, losses: true }, all);
        expect(checkLinearizable(operations).map(({ message }) => message)).toEqual([]);
      }),
      { numRuns: 25 },
    );
  });

  it.each(SHAPES)('every answer is among them: %s', (shape) => {
    const runs = SAMPLE.map((all) => new CoreRun({ shape, delayMs: 3, losses: true }, all));
    const seen = new Set(runs.flatMap(({ operations }) => operations.map(answer)));
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
          const [contradiction] = checkLinearizable(corrupted.operations, { maxStates: 20_000 });
          const { placed = [], unplaced = [] } = contradiction ?? {};
          expect([...placed, ...unplaced], `${promise}: ${what}`).toContain(corrupted.wrong);
        }
      }),
      { numRuns: 20, endOnFailure: true },
    );
  });

  it.each(CORRUPTIONS)('$promise: there is a place for the wrong answer: $what', ({ shapes, corrupt }) => {
    const hasPlace = (shape: Shape) =>
      SAMPLE.some(
        (all) => corrupt(new CoreRun({ shape, delayMs: 3, losses: false }, all), shape) !== undefined,
      );
    expect(shapes.some(hasPlace)).toBe(true);
  });
});
