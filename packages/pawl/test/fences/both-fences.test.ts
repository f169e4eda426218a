import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Bearer, Fence, MAX_TOKEN } from '../../src/fences/index.ts';
import { sqliteFence } from '../../src/fences/sqlite.ts';

/** One fenced value: what both fences have in common. */
interface FencedValue {
  raise(bearer: Bearer): void;
  write(bearer: Bearer, value: number): void;
  read(): number;
}

const fences: [string, () => FencedValue][] = [
  [
    'in memory',
    () => {
      const fence = new Fence('account');
      let stored = 0;
      return {
        raise: (bearer) => fence.raise(bearer),
        write: (bearer, value) =>
          fence.write(bearer, () => {
            stored = value;
          }),
        read: () => stored,
      };
    },
  ],
  [
    'in SQLite',
    () => {
      const db = new DatabaseSync(':memory:');
      db.exec('CREATE TABLE account (value INTEGER NOT NULL); INSERT INTO account VALUES (0)');
      const fence = sqliteFence(db);
      const update = db.prepare('UPDATE account SET value = ?');
      return {
        raise: (bearer) => fence.raise('account', bearer),
        write: (bearer, value) => fence.transaction('account', bearer, () => void update.run(value)),
        read: () => Number(db.prepare('SELECT value FROM account').get()?.value),
      };
    },
  ],
];

describe.each(fences)('the fence %s', (_name, make) => {
  it('S7: refuses a lower token, accepts an equal and a higher one', () => {
    const account = make();
    account.write(2n, 100);
    expect(() => account.write(1n, 200)).toThrow(expect.objectContaining({ code: 'PAWL_STALE_TOKEN' }));
    expect(account.read()).toBe(100);
    account.write(2n, 150);
    account.write({ token: 3n }, 160);
    expect(account.read()).toBe(160);
  });

  it('S7: the refusal names the resource, the token and the highest honoured', () => {
    const account = make();
    account.write(7n, 1);
    expect(() => account.raise(6n)).toThrow(
      expect.objectContaining({ resource: 'account', token: 6n, highest: 7n, outcome: 'definite' }),
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
  ])('S7: refuses %s, and nothing is written', (_what, bearer, code) => {
    const account = make();
    expect(() => account.write(bearer as Bearer, 9)).toThrow(expect.objectContaining({ code }));
    expect(() => account.raise(bearer as Bearer)).toThrow(expect.objectContaining({ code }));
    expect(account.read()).toBe(0);
    account.write(1n, 5);
    expect(account.read()).toBe(5);
  });

  it('S7: holds for tokens that a number cannot tell apart', () => {
    const account = make();
    account.write(MAX_TOKEN - 1n, 1);
    account.write(MAX_TOKEN, 2);
    expect(() => account.write(MAX_TOKEN - 1n, 3)).toThrow(
      expect.objectContaining({ highest: MAX_TOKEN, token: MAX_TOKEN - 1n }),
    );
    expect(account.read()).toBe(2);
  });

  it('S8: without a raise an update is lost between read and write; with it the late write is refused', () => {
    const run = (raises: boolean) => {
      const account = make();
      account.write(1n, 100);
      const late = account.read();
      if (raises) account.raise(2n);
      const seen = account.read();
      let refused = false;
      try {
        account.write(1n, late + 1);
      } catch {
        refused = true;
      }
      account.write(2n, seen + 10);
      return { refused, value: account.read() };
    };
    expect(run(false)).toEqual({ refused: false, value: 110 });
    expect(run(true)).toEqual({ refused: true, value: 110 });
  });

  it('S7, S8: whatever stale and current writers do, no effect of a lower token lands after a higher one was honoured', () => {
    const step = fc.record({
      token: fc.bigInt({ min: 1n, max: 6n }),
      act: fc.constantFrom('raise' as const, 'write' as const),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const account = make();
        let highest = 0n;
        let expected = 0;
        for (const [i, { token, act }] of steps.entries()) {
          const act1 = () => (act === 'raise' ? account.raise(token) : account.write(token, i));
          if (token < highest) expect(act1).toThrow();
          else {
            act1();
            highest = token;
            if (act === 'write') expected = i;
          }
          expect(account.read()).toBe(expected);
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe('those who hold side by side do not refuse each other', () => {
  it('S7: permits of a semaphore have a sequence each, and are fenced one by one', () => {
    const slots = [new Fence('pool#0'), new Fence('pool#1')] as const;
    slots[0].write(1n, () => {});
    slots[1].write(2n, () => {});
    slots[0].write(1n, () => {});
    slots[0].write(5n, () => {});
    slots[1].write(2n, () => {});
    expect(() => slots[0].write(1n, () => {})).toThrow(expect.objectContaining({ code: 'PAWL_STALE_TOKEN' }));
  });

  it('S7: shared holders have one token, and the next exclusive holder shuts all of them out', () => {
    const fence = new Fence('report');
    for (let reader = 0; reader < 3; reader += 1) fence.write(4n, () => {});
    fence.raise(5n);
    expect(() => fence.write(4n, () => {})).toThrow(expect.objectContaining({ code: 'PAWL_STALE_TOKEN' }));
  });
});
