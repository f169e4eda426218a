import type { Token } from '../../token.ts';
import { LabLock } from '../lab-lock.ts';
import type { Block } from '../lesson.ts';
import { FencedResource } from '../resource.ts';

const TTL_S = 10;
const PERMITS = 3;
const ROUNDS = 10;

/** All holders of a semaphore write in turn, at one fence or at one for each slot. */
function writeInTurn(grants: readonly { slot: number; token: Token }[], perSlot: boolean) {
  const fences = new Map<number, FencedResource>();
  let [accepted, refused] = [0, 0];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const { slot, token } of grants) {
      const key = perSlot ? slot : 0;
      const fence = fences.get(key) ?? new FencedResource();
      fences.set(key, fence);
      if (fence.writeFenced(`slot ${slot}`, round, token)) accepted += 1;
      else refused += 1;
    }
  }
  return { accepted, refused };
}

export function semaphoreFigures() {
  const lock = new LabLock(TTL_S);
  const locks = [{ name: 'pool', mode: 'exclusive', permits: PERMITS }] as const;
  const grants = Array.from({ length: PERMITS }, (_, i) => {
    const [grant] = lock.acquireAll(`c${i}`, 0, { locks }) ?? [];
    return { slot: grant?.slot ?? -1, token: grant?.token ?? 0n };
  });
  return {
    permits: PERMITS,
    tokens: grants.map(({ token }) => Number(token)),
    oneSequence: writeInTurn(grants, false),
    perSlot: writeInTurn(grants, true),
  };
}

export const semaphoreTokens: Block = {
  number: 12,
  title: 'One token sequence for a semaphore',
  lesson: 'valid holders refuse each other',
  needs: [3],
  measure() {
    const figures = semaphoreFigures();
    return {
      figures,
      setting: `${PERMITS} permits, all held, by tokens ${figures.tokens.join(', ')}. Each holder writes ${ROUNDS} times, in turn.`,
      table: {
        columns: ['the fence compares', 'accepted', 'refused'],
        rows: [
          ['all permits with one maximum', figures.oneSequence.accepted, figures.oneSequence.refused],
          ['each slot with its own', figures.perSlot.accepted, figures.perSlot.refused],
        ],
      },
      finding:
        'A fence has one maximum, so those who hold side by side must not share a sequence. Each permit is a lock of its own, and is fenced as one.',
      tryIt: {
        invitation: 'Who is let through at the one fence?',
        table: {
          columns: ['holder', 'writes accepted'],
          rows: [
            ['the last to come', ROUNDS],
            ['the first ones, until then', figures.oneSequence.accepted - ROUNDS],
          ],
        },
        finding: 'The newest holder shuts out its peers, though all of them hold.',
      },
    };
  },
};
