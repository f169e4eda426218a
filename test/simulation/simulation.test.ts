import { describe, expect, it } from 'vitest';
import { findMutation, MUTATIONS } from './mutations.ts';
import { simulate } from './simulation.ts';

const FOR_MS = 12_000;
const STEPS = 300;

describe('the simulation', () => {
  it('S1–S8, L1, C1, C4, C6: hold whatever goes wrong', async () => {
    const first = Date.now() % 2 ** 31;
    const until = performance.now() + FOR_MS;
    let grants = 0;
    for (let seed = first; performance.now() < until; seed += 1) {
      const result = await simulate({ seed, steps: STEPS });
      const again = `npm run sim -- --seed ${seed} --steps ${STEPS}`;
      expect(result.violation, `${again}\n${result.timeline}`).toBeUndefined();
      grants += result.grants;
    }
    expect(grants).toBeGreaterThan(0);
  }, 120_000);

  it('one seed is one run', async () => {
    const [first, second] = [
      await simulate({ seed: 7, steps: 100 }),
      await simulate({ seed: 7, steps: 100 }),
    ];
    expect(second).toEqual(first);
    expect(await simulate({ seed: 8, steps: 100 })).not.toEqual(first);
  });

  it.each(MUTATIONS.filter((_, i) => i % 6 === 0).map((mutation) => [mutation.defect, mutation] as const))(
    'finds that %s',
    async (_, mutation) => {
      expect(await findMutation(mutation, 60)).toContain('breaks a promise');
    },
    120_000,
  );
});
