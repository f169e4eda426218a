import { describe, expect, it } from 'vitest';
import { findMutation, MUTATIONS, mutated } from './mutations.ts';
import { simulate } from './simulation.ts';

/** Set it to see more of it than the tests have time for: `PAWL_SIM_SECONDS=60`. */
const FOR_MS = Number(process.env.PAWL_SIM_SECONDS ?? 12) * 1000;
const STEPS = 300;

describe('the simulation', () => {
  it(
    'S1–S8, L1, C1, C4, C6: hold whatever goes wrong',
    async () => {
      const first = Date.now() % 2 ** 31;
      const until = performance.now() + FOR_MS;
      let [grants, operations] = [0, 0];
      const injected = new Set<string>();
      for (let seed = first; performance.now() < until; seed += 1) {
        const result = await simulate({ seed, steps: STEPS });
        const again = `npm run sim -- --seed ${seed} --steps ${STEPS}`;
        expect(result.violation, `${again}\n${result.timeline}`).toBeUndefined();
        grants += result.grants;
        operations += result.operations;
        for (const kind of result.injected.keys()) injected.add(kind);
      }
      expect(grants).toBeGreaterThan(0);
      expect(operations).toBeGreaterThan(grants);
      // Where the machine is slow these are few runs; what is rare need not have come.
      expect([...injected]).toEqual(
        expect.arrayContaining(['delays', 'lostReplies', 'refusals', 'lostWakes', 'drift']),
      );
    },
    FOR_MS + 120_000,
  );

  it('one seed is one run', async () => {
    const [first, second] = [
      await simulate({ seed: 7, steps: 100 }),
      await simulate({ seed: 7, steps: 100 }),
    ];
    expect(second).toEqual(first);
    expect(await simulate({ seed: 8, steps: 100 })).not.toEqual(first);
  });

  it('every deliberate defect fits the sources', () => {
    for (const mutation of MUTATIONS) expect(mutated(mutation)).not.toContain(mutation.from);
  });

  it.each(MUTATIONS.filter((_, i) => i % 6 === 5).map((mutation) => [mutation.defect, mutation] as const))(
    'finds that %s',
    async (_, mutation) => {
      // Always the same runs: how many are needed does not hang on the machine.
      expect(await findMutation(mutation, 110, 1)).toContain('breaks a promise');
    },
    120_000,
  );
});
