import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Bearer, MAX_TOKEN } from '../../src/fences/index.ts';

/** One fenced value in a database: what the fences of all databases have in common. Each has a resource and a log of its own. */
export interface FencedRow {
  raise(bearer: Bearer): Promise<void>;
  write(bearer: Bearer, value: number): Promise<void>;
  read(): Promise<number>;
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
  describe('what every fence keeps', () => {
    it('S7: refuses a lower token, accepts an equal and a higher one', async () => {
      const row = await make();
      await row.write(2n, 100);
      await expect(row.write(1n, 200)).rejects.toThrow(stale);
      expect(await row.read()).toBe(100);
      await row.write(2n, 150);
      await row.write({ token: 3n }, 160);
      expect(await row.read()).toBe(160);
    });

    it('S7: the refusal names the resource, the token and the highest honoured', async () => {
      const row = await make();
      await row.write(7n, 1);
      await expect(row.raise(6n)).rejects.toThrow(
        expect.objectContaining({
          resource: expect.any(String),
          token: 6n,
          highest: 7n,
          outcome: 'definite',
        }),
      );
    });

    it.each([
      ['undefined', undefined, 'PAWL_MISSING_TOKEN'],
      ['null', null, 'PAWL_MISSING_TOKEN'],
      ['a lease without token', {}, 'PAWL_MISSING_TOKEN'],
      ['a number', 3, 'PAWL_INVALID_TOKEN'],
      ['a text', '3', 'PAWL_INVALID_TOKEN'],
      ['zero', 0n, 'PAWL_INVALID_TOKEN'],
      ['a negative token', -1n, 'PAWL_INVALID_TOKEN'],
      ['a token too high', MAX_TOKEN + 1n, 'PAWL_INVALID_TOKEN'],
    ])('S7: refuses %s, and nothing is written', async (_what, bearer, code) => {
      const row = await make();
      await expect(row.write(bearer as Bearer, 9)).rejects.toThrow(expect.objectContaining({ code }));
      await expect(row.raise(bearer as Bearer)).rejects.toThrow(expect.objectContaining({ code }));
      expect(await row.read()).toBe(0);
      await row.write(1n, 5);
      expect(await row.read()).toBe(5);
    });

    it('S7: holds for tokens that a number cannot tell apart', async () => {
      const row = await make();
      await row.write(MAX_TOKEN - 1n, 1);
      await row.write(MAX_TOKEN, 2);
      await expect(row.write(MAX_TOKEN - 1n, 3)).rejects.toThrow(
        expect.objectContaining({ highest: MAX_TOKEN, token: MAX_TOKEN - 1n }),
      );
      expect(await row.read()).toBe(2);
    });

    it('S8: without a raise an update is lost between read and write; with it the late write is refused', async () => {
      const run = async (raises: boolean) => {
        const row = await make();
        await row.write(1n, 100);
        const late = await row.read();
        if (raises) await row.raise(2n);
        const seen = await row.read();
        const refused = await row.write(1n, late + 1).then(
          () => false,
          () => true,
        );
        await row.write(2n, seen + 10);
        return { refused, value: await row.read() };
      };
      expect(await run(false)).toEqual({ refused: false, value: 110 });
      expect(await run(true)).toEqual({ refused: true, value: 110 });
    });

    it('S7: what is rolled back was not honoured', async () => {
      const row = await make();
      await row.log(9n, true);
      await row.log(3n, false);
      await expect(row.raise(2n)).rejects.toThrow(expect.objectContaining({ highest: 3n }));
      expect(await row.logged()).toEqual([3n]);
    });

    it('S7, S8: whatever stale and current writers do one after the other, each is judged by the highest before it', async () => {
      const step = fc.record({
        token: fc.bigInt({ min: 1n, max: 6n }),
        act: fc.constantFrom('raise' as const, 'write' as const),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
          const row = await make();
          let highest = 0n;
          let expected = 0;
          for (const [i, { token, act }] of steps.entries()) {
            const done = act === 'raise' ? row.raise(token) : row.write(token, i);
            if (token < highest) await expect(done).rejects.toThrow(stale);
            else {
              await done;
              highest = token;
              if (act === 'write') expected = i;
            }
          }
          expect(await row.read()).toBe(expected);
        }),
        { numRuns: 15 },
      );
    }, 60_000);

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
