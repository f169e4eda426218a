import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Bearer, MAX_TOKEN } from '../../src/fences/index.ts';

/** One fenced value, wherever it is; 0 until it is written. */
export interface FencedValue {
  raise(bearer: Bearer): Promise<void>;
  write(bearer: Bearer, value: number): Promise<void>;
  read(): Promise<number>;
}

const stale = expect.objectContaining({ code: 'PAWL_STALE_TOKEN' });

/** What every fence keeps whose resource is somewhere else. Calls `make`, which gives a new one, in its tests only. */
export function fencedValue(make: () => Promise<FencedValue>): void {
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
  });
}
