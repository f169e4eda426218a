import { describe, expect, it } from 'vitest';
import { checkLinearizable, SimulatedTime } from '../../packages/pawl/src/testing/index.ts';
import { Observations } from './observations.ts';

async function observe(play: (seen: Observations, time: SimulatedTime) => Promise<void>): Promise<string[]> {
  const time = new SimulatedTime();
  const seen = new Observations(time);
  await play(seen, time);
  return checkLinearizable(seen.operations()).map(({ of }) => of);
}

describe('what the simulation observes', () => {
  it('S1, S2: explains holders one after the other, also where one vanished', async () => {
    const wrong = await observe(async (seen, time) => {
      const first = seen.granted('a', 1n, 'first', time.nowMs);
      await time.advance(10);
      await first.release(() => time.advance(5));
      await time.advance(1);
      seen.granted('a', 2n, 'second', time.nowMs).held();
      await time.advance(10);
      seen.granted('a', 3n, 'third', time.nowMs);
    });
    expect(wrong).toEqual([]);
  });

  it('S2: shows a grant while another was still found to be in force', async () => {
    const wrong = await observe(async (seen, time) => {
      const first = seen.granted('a', 1n, 'first', time.nowMs);
      await time.advance(10);
      seen.granted('a', 2n, 'second', time.nowMs);
      await time.advance(10);
      first.held();
    });
    expect(wrong).toEqual(['lock "a"']);
  });

  it('S7: shows a fence that honours a token lower than one before', async () => {
    const wrong = await observe(async (seen, time) => {
      seen.fenced('raise', 'a', 2n, 'accepted');
      await time.advance(1);
      seen.fenced('write', 'a', 1n, 'accepted');
    });
    expect(wrong).toEqual(['resource "a"']);
  });
});
