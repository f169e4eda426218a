import { LabLock } from '../lab-lock.ts';
import type { Block } from '../lesson.ts';
import { Resource } from '../resource.ts';

const TTL_S = 10;
const PAUSE_S = 10.1;

/** Deliberately wrong: A looks at the lock's current holder itself, before or after its pause, and then writes. */
function clientSideCheck(pauseComes: 'before' | 'after') {
  const lock = new LabLock(TTL_S);
  const resource = new Resource();
  lock.acquire('A', 0);
  const looksAtS = pauseComes === 'before' ? PAUSE_S : 0;
  if (pauseComes === 'before' && lock.acquire('B', PAUSE_S) !== null) resource.write('B', 100);
  const believesToHold = lock.holders(looksAtS).includes('A');
  if (pauseComes === 'after' && lock.acquire('B', PAUSE_S) !== null) resource.write('B', 100);
  if (believesToHold) resource.write('A', 200);
  return { writers: resource.writers.join(''), final: resource.value, declines: !believesToHold };
}

export function whereToCheckFigures() {
  const before = clientSideCheck('before');
  const after = clientSideCheck('after');
  const verdict = (final: number | null) => (final === 100 ? 'safe' : 'still wrong');
  return {
    rows: [
      {
        design: 'checks its own token, then writes',
        writers: before.writers,
        final: before.final,
        verdict: verdict(before.final),
      },
      {
        design: 'paused between check and write',
        writers: after.writers,
        final: after.final,
        verdict: verdict(after.final),
      },
    ],
    tryIt: [
      { pause: 'before the check', declines: before.declines },
      { pause: 'after the check', declines: after.declines },
    ],
  };
}

export const whereToCheck: Block = {
  number: 4,
  title: 'Where the check must happen',
  lesson: 'a check in the client protects nothing it can be paused after',
  needs: [3],
  measure() {
    const figures = whereToCheckFigures();
    return {
      figures,
      setting: 'No fence. A itself asks whether it still holds the lock, and writes if it does.',
      table: {
        columns: ['A', 'writers', 'final value', 'verdict'],
        rows: figures.rows.map((row) => [row.design, row.writers, row.final ?? '', row.verdict]),
      },
      finding:
        'The check tells what was true, the write needs what is true, and a pause fits between them. Check and effect have to ' +
        'be one step, so they belong where the writes are put in order: at the resource.',
      tryIt: {
        invitation: 'The same program and the same pause; only where it strikes differs.',
        table: {
          columns: ['the pause comes', 'A'],
          rows: figures.tryIt.map((row) => [row.pause, row.declines ? 'declines: safe' : 'writes: wrong']),
        },
        finding: 'Which of the two happens is up to the scheduler. The assembly measures how often.',
      },
    };
  },
};
