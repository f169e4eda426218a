import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkLinearizable, type Operation } from '../../src/testing/index.ts';
import { isLinearizableByForce } from './brute-force.ts';
import { type Asked, ask, end, release, type Span } from './histories.ts';

const span = fc.tuple(fc.nat(12), fc.nat(6)).map(([at, length]): Span => [at, at + length]);
const open = fc.nat(12).map((at): Span => [at, Infinity]);
const session = fc.constantFrom('a', 'b', 'c');
const token = fc.constantFrom(10n, 20n, 30n);
const slot = fc.nat(2);

function anything(asked: fc.Arbitrary<Asked>, slots: boolean): fc.Arbitrary<Operation> {
  const reply = fc.oneof(
    { weight: 3, arbitrary: token },
    { weight: 3, arbitrary: fc.constant('refused' as const) },
    { weight: 1, arbitrary: fc.constant('unknown' as const) },
  );
  const which = slots ? fc.option(slot, { nil: undefined }) : fc.constant(undefined);
  return fc.oneof(
    { weight: 4, arbitrary: fc.tuple(session, asked, reply, span).map((args) => ask(...args)) },
    {
      weight: 1,
      arbitrary: fc.tuple(session, asked, open).map(([who, how, when]) => ask(who, how, 'unknown', when)),
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(
          session,
          fc.oneof(token, fc.constant('unknown' as const)),
          span,
          fc.constantFrom('released', 'released', 'notHeld', 'unknown' as const),
          which,
        )
        .map((args) => release(...args)),
    },
    { weight: 1, arbitrary: fc.tuple(session, fc.oneof(span, open)).map((args) => end(...args)) },
  );
}

const SHAPES: [string, fc.Arbitrary<Operation>][] = [
  [
    'readers and writers',
    anything(
      fc.record({
        mode: fc.constantFrom('exclusive', 'shared' as const),
        waits: fc.boolean(),
        several: fc.nat(5).map((n) => n === 0),
      }),
      false,
    ),
  ],
  ['holders of two slots', anything(fc.record({ permits: fc.constant(2), slot, waits: fc.boolean() }), true)],
  ['some who barge', anything(fc.record({ waits: fc.boolean(), barging: fc.boolean() }), false)],
];

describe('checkLinearizable and trying every order', () => {
  it.each(SHAPES)('say the same of %s', (_name, operation) => {
    const verdicts = new Map<boolean, number>();
    fc.assert(
      fc.property(fc.array(operation, { minLength: 2, maxLength: 5 }), (history) => {
        const expected = isLinearizableByForce(history);
        verdicts.set(expected, (verdicts.get(expected) ?? 0) + 1);
        expect(checkLinearizable(history).length === 0).toBe(expected);
      }),
      { numRuns: 200 },
    );
    expect([...verdicts.values()].every((count) => count > 15)).toBe(true);
  });
});
