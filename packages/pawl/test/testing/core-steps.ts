import fc from 'fast-check';

const step = fc.record({
  action: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('try' as const, 'wait' as const, 'release' as const) },
    { weight: 1, arbitrary: fc.constantFrom('lateRelease' as const, 'timeOut' as const, 'claim' as const) },
    { weight: 1, arbitrary: fc.constantFrom('end' as const, 'bury' as const) },
  ),
  client: fc.nat(4),
  pick: fc.nat(1000),
  /** How long before it took effect it was called, and how long after it returned, at most. */
  early: fc.nat(100),
  late: fc.nat(100),
  /** Whether the reply was lost. */
  isLost: fc.nat(19).map((n) => n === 19),
});
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
export const steps: fc.Arbitrary<Step[]> = fc.array(step, { minLength: 30, maxLength: 50, size: 'max' });
