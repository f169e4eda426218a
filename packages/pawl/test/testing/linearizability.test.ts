import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidArgumentError } from '../../src/errors.ts';
import {
  type AcquireOperation,
  checkLinearizable,
  HistoryUndecidedError,
  type Operation,
} from '../../src/testing/index.ts';
import { isLinearizableByForce } from './brute-force.ts';
import { acquire, ask, BAD, end, fenced, GOOD, release, type Span } from './histories.ts';
import { BAD_IN_MODES, GOOD_IN_MODES } from './mode-histories.ts';
import { sequentialHistory } from './sequential-run.ts';
import { BAD_UNSEEN, GOOD_UNSEEN } from './unseen-histories.ts';

describe('checkLinearizable', () => {
  it.each([...GOOD, ...GOOD_IN_MODES, ...GOOD_UNSEEN])('accepts %s', (_name, history) => {
    expect(checkLinearizable(history).map(({ message }) => message)).toEqual([]);
  });

  it.each([...BAD, ...BAD_IN_MODES, ...BAD_UNSEEN])('%s: refuses %s', (_promise, _name, history) => {
    expect(checkLinearizable(history)).toHaveLength(1);
  });

  it('says how far an order goes, and what cannot come next', () => {
    const history = [
      acquire('a', 1n, [0, 1]),
      release('a', 1n, [2, 3]),
      acquire('b', 5n, [4, 5]),
      acquire('c', 6n, [6, 7]),
      acquire('d', 7n, [6.5, 8]),
    ];
    const [contradiction] = checkLinearizable(history);
    expect(contradiction).toMatchObject({
      of: 'lock "x"',
      placed: history.slice(0, 3),
      unplaced: history.slice(3),
    });
    expect(contradiction?.message).toContain('session "b" holds it with token 5');
    expect(contradiction?.message).toContain('c acquire → token 6 (6.0 ms to 7.0 ms)');
  });

  it('accepts whatever a lock and a fence did one after the other, seen with delays and losses', () => {
    fc.assert(
      fc.property(sequentialHistory, fc.infiniteStream(fc.nat()), (history, order) => {
        const shuffled = history
          .map((each) => ({ each, at: order.next().value ?? 0 }))
          .sort((a, b) => a.at - b.at);
        expect(checkLinearizable(shuffled.map(({ each }) => each)).map(({ message }) => message)).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it('S1: refuses any such history in which two tokens are swapped', () => {
    fc.assert(
      fc.property(sequentialHistory, (history) => {
        const grants = history.filter(
          (each): each is AcquireOperation => each.kind === 'acquire' && typeof each.reply === 'bigint',
        );
        const [first, second] = [grants[0], grants.at(-1)];
        fc.pre(first !== undefined && second !== undefined && first.returnedAtMs < second.calledAtMs);
        const swapped = history.map((each): Operation => {
          if (each === first) return { ...first, reply: second.reply };
          return each === second ? { ...second, reply: first.reply } : each;
        });
        expect(checkLinearizable(swapped).map(({ of }) => of)).toEqual(['lock "x"']);
      }),
      { numRuns: 200 },
    );
  });

  it('S2: refuses any such history in which somebody else was granted the lock while it was held', () => {
    fc.assert(
      fc.property(sequentialHistory, fc.bigInt({ min: 1n, max: 200n }), (history, token) => {
        const grant = history.find((each) => each.kind === 'acquire' && typeof each.reply === 'bigint');
        fc.pre(grant?.kind === 'acquire');
        const freed = history.find(
          (each) => each.kind === 'release' && each.reply === 'released' && each.token === grant.reply,
        );
        // From the one's return to the other's call it is surely held.
        fc.pre(freed !== undefined && grant.returnedAtMs + 2 < freed.calledAtMs);
        const intruder = acquire('intruder', token, [grant.returnedAtMs + 1, freed.calledAtMs - 1]);
        expect(checkLinearizable([...history, intruder]).map(({ of }) => of)).toEqual(['lock "x"']);
      }),
      { numRuns: 200 },
    );
  });

  it('says the same as trying every order', () => {
    const span = fc.tuple(fc.nat(12), fc.nat(6)).map(([at, length]): Span => [at, at + length]);
    const open = fc.nat(12).map((at): Span => [at, Infinity]);
    const session = fc.constantFrom('a', 'b');
    const token = fc.constantFrom(10n, 20n, 30n, 40n);
    const anything = fc.oneof(
      fc
        .tuple(session, fc.oneof(token, fc.constantFrom('refused', 'unknown' as const)), span)
        .map((args) => acquire(...args)),
      fc.tuple(session, open).map(([who, when]) => acquire(who, 'unknown', when)),
      fc
        .tuple(
          session,
          fc.oneof(token, fc.constant('unknown' as const)),
          span,
          fc.constantFrom('released', 'released', 'notHeld', 'unknown' as const),
        )
        .map((args) => release(...args)),
      fc.tuple(session, token, open).map(([who, of, when]) => release(who, of, when, 'unknown')),
      fc.tuple(session, fc.oneof(span, open)).map((args) => end(...args)),
    );
    const write = fc.oneof(
      fc
        .tuple(
          fc.constantFrom('write', 'raise' as const),
          token,
          span,
          fc.constantFrom('accepted', 'refused', 'unknown' as const),
        )
        .map((args) => fenced(...args)),
      fc
        .tuple(fc.constant('write' as const), token, open)
        .map(([kind, of, when]) => fenced(kind, of, when, 'unknown')),
    );
    const verdicts = new Map<boolean, number>();
    const agree = (history: Operation[]) => {
      const expected = isLinearizableByForce(history);
      verdicts.set(expected, (verdicts.get(expected) ?? 0) + 1);
      expect(checkLinearizable(history).length === 0).toBe(expected);
    };
    fc.assert(fc.property(fc.array(anything, { maxLength: 5 }), agree), { numRuns: 1500 });
    fc.assert(fc.property(fc.array(write, { maxLength: 5 }), agree), { numRuns: 500 });
    expect([...verdicts.values()].every((count) => count > 100)).toBe(true);
  });

  it('reads a long history in one go', () => {
    const history: Operation[] = [];
    for (let i = 0; i < 1500; i += 1) {
      const [session, token] = [`s${i % 7}`, BigInt(i + 1)];
      history.push(
        acquire(session, token, [i * 10 - 60, i * 10 + 1]),
        release(session, token, [i * 10 + 5, i * 10 + 12]),
      );
      // A third of the clients never heard of their releases.
      if (i % 3 === 0)
        history[history.length - 1] = release(session, token, [i * 10 + 5, Infinity], 'unknown');
    }
    expect(checkLinearizable(history, { maxStates: 20_000 })).toEqual([]);
  });

  it('says that it is undecided rather than yes or no when it would need more than it may remember', () => {
    const many = Array.from({ length: 16 }, (_, i) => fenced('write', BigInt(i + 1), [0, 99]));
    const never = fenced('write', 1n, [98, 99], 'refused');
    const impossible = [...many, never, fenced('write', 30n, [0, 99]), fenced('write', 29n, [100, 101])];
    expect(() => checkLinearizable(impossible, { maxStates: 50 })).toThrow(HistoryUndecidedError);
    // A contradiction elsewhere decides.
    const fallen = [acquire('a', 5n, [0, 1]), acquire('b', 4n, [2, 3])];
    expect(checkLinearizable([...impossible, ...fallen], { maxStates: 50 })).toHaveLength(1);
  });

  it.each([
    ['returnedAtMs', { ...acquire('a', 1n, [5, 4]) }],
    ['returnedAtMs', { ...acquire('a', 1n, [5, Infinity]) }],
    ['returnedAtMs', { ...acquire('a', 1n, [5, Number.NaN]) }],
    ['calledAtMs', { ...acquire('a', 1n, [-Infinity, 4]) }],
    ['reply', { ...acquire('a', 0n, [0, 1]) }],
    ['reply', { ...release('a', 1n, [0, 1]), reply: 'held' }],
    ['token', { ...fenced('write', 1n, [0, 1]), token: 'unknown' }],
    ['mode', { ...acquire('a', 1n, [0, 1]), mode: 'mixed' }],
    ['mode', { ...acquire('a', 1n, [0, 1]), mode: 'shared', permits: 2, slot: 0 }],
    ['permits', { ...acquire('a', 1n, [0, 1]), permits: 0, slot: 0 }],
    ['slot', { ...acquire('a', 1n, [0, 1]), permits: 2 }],
    ['slot', { ...release('a', 1n, [0, 1]), slot: -1 }],
    ['leftAtMs', { ...acquire('a', 'refused', [4, 5]), waits: true, leftAtMs: 3 }],
    ['kind', { ...acquire('a', 1n, [0, 1]), kind: 'steal' }],
  ])('an operation with a bad %s is refused', (parameter, operation) => {
    const check = () => checkLinearizable([operation as Operation]);
    expect(check).toThrow(InvalidArgumentError);
    expect(check).toThrow(expect.objectContaining({ parameter }));
  });

  it('a name that is a lock for one and a semaphore for another is refused', () => {
    const history = [acquire('a', 1n, [0, 1]), ask('b', { permits: 2, slot: 0 }, 2n, [2, 3])];
    expect(() => checkLinearizable(history)).toThrow(expect.objectContaining({ parameter: 'permits' }));
  });

  it('tells the mode, the slots and whoever waits', () => {
    const shared = { mode: 'shared' } as const;
    const readers = [
      ask('a', shared, 1n, [0, 1]),
      ask('b', shared, 1n, [2, 3]),
      ask('w', { waits: true }, 2n, [4, 20]),
      acquire('c', 3n, [5, 6]),
      release('a', 1n, [21, 22]),
    ];
    expect(checkLinearizable(readers)[0]?.message).toContain(
      'sessions "a" and "b" hold it in shared mode with token 1, and w may wait for it; one of these',
    );
    const slots = [
      ask('a', { permits: 2, slot: 1 }, 4n, [0, 1]),
      ask('b', { permits: 2 }, 'refused', [2, 3]),
    ];
    const message = checkLinearizable(slots)[0]?.message;
    expect(message).toContain('session "a" holds slot 1 of 2 with token 4; one of these');
    expect(message).toContain('b acquire → refused');
  });
});
