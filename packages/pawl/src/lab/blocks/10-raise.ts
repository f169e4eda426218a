import { LabLock } from '../lab-lock.ts';
import { type Block, yesNo } from '../lesson.ts';
import { FencedResource } from '../resource.ts';

const TTL_S = 10;
const START = 100;
const A_ADDS = 200;
const B_ADDS = 50;

/** Both read, add and write. A's write lands between B's read and B's write. */
export function betweenReadAndWrite(raises: boolean) {
  const lock = new LabLock(TTL_S);
  const account = new FencedResource();
  account.value = START;
  const a = lock.acquire('A', 0);
  const aRead = account.value;
  const b = lock.acquire('B', TTL_S + 0.1);
  if (raises && b !== null) account.raise(b);
  const bRead = account.value;
  const aAccepted = account.writeFenced('A', (aRead ?? 0) + A_ADDS, a);
  const bAccepted = account.writeFenced('B', (bRead ?? 0) + B_ADDS, b);
  const added = (aAccepted ? A_ADDS : 0) + (bAccepted ? B_ADDS : 0);
  return { raises, aAccepted, bAccepted, final: account.value, lost: START + added - (account.value ?? 0) };
}

export function raiseFigures() {
  const rows = [betweenReadAndWrite(false), betweenReadAndWrite(true)];
  // A, refused, acquires the lock again and adds to what it now reads.
  const afterRetry = (rows[1]?.final ?? 0) + A_ADDS;
  return { rows, tryIt: { afterRetry, expected: START + A_ADDS + B_ADDS } };
}

export const raiseBeforeYouRead: Block = {
  number: 10,
  title: 'Raise before you read',
  lesson: 'a fence that is only checked at writes still loses updates',
  needs: [3],
  measure() {
    const figures = raiseFigures();
    return {
      figures,
      setting: `An account of ${START} behind a fence. A adds ${A_ADDS}, B adds ${B_ADDS}; each reads, adds and writes. A is late, and its write lands between B's read and B's write.`,
      table: {
        columns: ['B raises the fence first', "A's write", "B's write", 'ends at', 'accepted and lost'],
        rows: figures.rows.map((row) => [
          yesNo(row.raises),
          row.aAccepted ? 'accepted' : 'refused',
          row.bAccepted ? 'accepted' : 'refused',
          row.final ?? '',
          row.lost,
        ]),
      },
      finding:
        'Until B writes, the resource knows nothing of B, and A is current to it. To raise the fence is to say "I am here" before looking at anything.',
      tryIt: {
        invitation: 'A was refused, so it knows. It acquires the lock again and adds to what it reads now.',
        table: {
          columns: ['ends at', 'should be'],
          rows: [[figures.tryIt.afterRetry, figures.tryIt.expected]],
        },
        finding: 'A refusal is worth more than a silent loss: whoever was refused can do it again.',
      },
    };
  },
};
