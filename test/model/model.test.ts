import { describe, expect, it } from 'vitest';
import { installPackage, works } from '../../packages/pawl/test/engines/server-tools.ts';
import { search, VARIANTS } from './model.ts';

describe.skipIf(!haveSpin())('the model of the lock, all states of all variants but the longest', () => {
  const sound = VARIANTS.filter(({ violates, long }) => violates === null && long !== true);
  it.each(sound.map((each) => [each.title, each] as const))(
    'S1–S8, L1: no promise is broken with %s',
    (_, variant) => {
      const { violated, complete, states } = search(variant);
      expect({ violated, complete }).toEqual({ violated: null, complete: true });
      expect(states).toBeGreaterThan(100_000);
    },
    120_000,
  );

  it.each(VARIANTS.filter(({ violates }) => violates !== null).map((each) => [each.title, each] as const))(
    'an update is lost, or a grant doubled, with %s',
    (_, variant) => {
      const { violated, trail } = search(variant);
      expect(violated).toBe(variant.violates);
      expect(trail).toContain('assertion violated');
    },
    60_000,
  );
});

function haveSpin(): boolean {
  const have = () => works('spin', ['-V']) && works('gcc', ['--version']);
  if (!have()) for (const name of ['spin', 'gcc', 'libc6-dev']) installPackage(name);
  return have();
}
