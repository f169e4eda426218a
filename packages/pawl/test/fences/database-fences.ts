import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Bearer } from '../../src/fences/index.ts';
import { type FencedValue, fencedValue } from './fenced-value.ts';

/** One fenced value in a database, with a log beside it. Each has a resource of its own. */
export interface FencedRow extends FencedValue {
  /** In one fenced transaction: writes the token at the end of a log; then undoes it all, if asked to. */
  log(bearer: Bearer, undo: boolean): Promise<void>;
  /** The tokens in the log, in the order in which they were written. */
  logged(): Promise<bigint[]>;
}

const stale = expect.objectContaining({ code: 'PAWL_STALE_TOKEN' });

/**
 * What every fence in a database keeps. Calls `make` in its tests only.
 *
 * @param isRepeatable whether the database rolled back a transaction for the sake of another, which may happen to any transaction.
 */
export function databaseFence(
  make: () => Promise<FencedRow>,
  isRepeatable: (error: unknown) => boolean = () => false,
): void {
  fencedValue(make);

  describe('what every fence in a database keeps', () => {
    it('S7: what is rolled back was not honoured', async () => {
      const row = await make();
      await row.log(9n, true);
      await row.log(3n, false);
      await expect(row.raise(2n)).rejects.toThrow(expect.objectContaining({ highest: 3n }));
      expect(await row.logged()).toEqual([3n]);
    });

    it('S7, S8: whatever writers do at once, no effect of a lower token lands after a higher one was honoured', async () => {
      const step = fc.record({
        token: fc.bigInt({ min: 1n, max: 8n }),
        act: fc.constantFrom('raise' as const, 'log' as const, 'log' as const, 'undo' as const),
      });
      const writers = fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), {
        minLength: 2,
        maxLength: 5,
      });
      await fc.assert(
        fc.asyncProperty(writers, async (programs) => {
          const row = await make();
          let accepted = 0;
          const run = async (steps: (typeof programs)[number]) => {
            for (const { token, act } of steps) {
              try {
                if (act === 'raise') await row.raise(token);
                else await row.log(token, act === 'undo');
                if (act === 'log') accepted += 1;
              } catch (error) {
                if (!isRepeatable(error)) expect(error).toEqual(stale);
              }
            }
          };
          await Promise.all(programs.map(run));
          const logged = await row.logged();
          expect(logged).toHaveLength(accepted);
          expect(logged).toEqual(logged.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
        }),
        { numRuns: 25 },
      );
    }, 60_000);
  });
}
