import { LabLock } from '../lab-lock.ts';
import { type Block, yesNo } from '../lesson.ts';
import { Resource } from '../resource.ts';

const TTL_S = 10;
const PAUSES_S = [2, 9.9, 10.1, 30];
const SWEEP_S = [5, 9, 9.99, 10, 10.01, 15];

/** A takes the lease, is paused, and writes when it wakes; B takes over if it can. */
export function pausedHolder(ttlS: number, pauseS: number) {
  const lock = new LabLock(ttlS);
  const resource = new Resource();
  lock.acquire('A', 0);
  const bAcquired = lock.acquire('B', pauseS) !== null;
  if (bAcquired) resource.write('B', 100);
  resource.write('A', 200);
  return {
    pauseS,
    bAcquired,
    final: resource.value,
    writers: resource.writers.join(''),
    splitBrain: bAcquired,
  };
}

export function leaseFigures() {
  return {
    ttlS: TTL_S,
    rows: PAUSES_S.map((pauseS) => pausedHolder(TTL_S, pauseS)),
    tryIt: SWEEP_S.map((pauseS) => [pauseS, pausedHolder(TTL_S, pauseS).bAcquired] as const),
  };
}

export const lease: Block = {
  number: 2,
  title: 'A lease',
  lesson: 'expiry ends the wedge and lets two clients write',
  needs: [1],
  measure() {
    const figures = leaseFigures();
    return {
      figures,
      setting: `A lease of ${TTL_S} s. A acquires it, is paused, and writes 200 when it wakes. B writes 100 if it gets the lease meanwhile.`,
      table: {
        columns: ['A is paused for', 'B acquired', 'final value', 'writers', 'verdict'],
        rows: figures.rows.map((row) => [
          `${row.pauseS.toFixed(1)} s`,
          yesNo(row.bAcquired),
          row.final ?? '',
          row.writers,
          row.splitBrain ? 'split brain' : 'safe',
        ]),
      },
      finding:
        'A pause longer than the lease, and the older write stands over the newer one. Nobody did anything wrong: not the ' +
        'lock, not A, not B. Only the value is wrong, and nothing has reported it.',
      tryIt: {
        invitation: 'Move the pause across the end of the lease.',
        table: {
          columns: ['A is paused for', 'B acquires', 'verdict'],
          rows: figures.tryIt.map(([pauseS, b]) => [
            `${pauseS.toFixed(2)} s`,
            yesNo(b),
            b ? 'A overwrites B' : 'safe',
          ]),
        },
        finding:
          'The edge is sharp and stands at the TTL, that moment included. A cannot see it from where it is.',
      },
    };
  },
};
