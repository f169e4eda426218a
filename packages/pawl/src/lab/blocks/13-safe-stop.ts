import { type Block, percent } from '../lesson.ts';
import { TwisterRandom } from '../random.ts';

const SEED = 31;
const OPERATIONS = 20_000;
const TTL_S = 5;
const WORK_MEAN_S = 2;
const TROUBLE_SHARE = 0.05;
const TROUBLE_MEAN_S = 8;
/** Between the last look at the signal and the write. */
const GAP_S = 0.002;

type Policy = 'no renewal' | 'renewal at TTL/3' | 'renewal, stop at TTL/2';

interface Operation {
  readonly workS: number;
  /** A stall stops the process; an outage only cuts it off from the lock service, and it works on. */
  readonly trouble: 'none' | 'stall' | 'outage';
  readonly troubleS: number;
  readonly when: number;
}

function draw(): readonly Operation[] {
  const random = new TwisterRandom(SEED);
  return Array.from({ length: OPERATIONS }, () => {
    const workS = random.exponential(WORK_MEAN_S);
    const u = random.random();
    const trouble = u > TROUBLE_SHARE ? 'none' : u > TROUBLE_SHARE / 2 ? 'stall' : 'outage';
    return { workS, trouble, troubleS: random.exponential(TROUBLE_MEAN_S), when: random.random() } as const;
  });
}

/** What becomes of an operation: it writes under its lease, writes as a zombie, or stops by itself. */
export function outcome(
  { workS, trouble, troubleS, when }: Operation,
  policy: Policy,
): 'writes' | 'zombie' | 'stops' {
  const stallS = trouble === 'stall' ? troubleS : 0;
  if (policy === 'no renewal') return workS + stallS > TTL_S ? 'zombie' : 'writes';
  if (trouble === 'none') return 'writes';
  const strikesAtS = when * (workS + GAP_S);
  const sinceRenewalS = strikesAtS % (TTL_S / 3);
  const leftS = workS + GAP_S - strikesAtS;
  if (trouble === 'outage') {
    const worksUntilS = Math.min(leftS, troubleS);
    if (policy === 'renewal, stop at TTL/2')
      return worksUntilS > TTL_S / 2 - sinceRenewalS ? 'stops' : 'writes';
    return worksUntilS > TTL_S - sinceRenewalS ? 'zombie' : 'writes';
  }
  const lost = troubleS > TTL_S - sinceRenewalS;
  if (policy === 'renewal at TTL/3') return lost ? 'zombie' : 'writes';
  // On waking the process sees that half of the TTL is gone, unless it was stopped after its last look.
  const looksAgain = strikesAtS <= workS;
  if (looksAgain && troubleS > TTL_S / 2 - sinceRenewalS) return 'stops';
  return lost ? 'zombie' : 'writes';
}

export function safeStopFigures() {
  const operations = draw();
  const policies: readonly Policy[] = ['no renewal', 'renewal at TTL/3', 'renewal, stop at TTL/2'];
  return policies.map((policy) => {
    const count = { writes: 0, zombie: 0, stops: 0 };
    for (const operation of operations) count[outcome(operation, policy)] += 1;
    return { policy, ...count };
  });
}

export const safeStop: Block = {
  number: 13,
  title: 'Safe-stop',
  lesson: 'who cannot renew stops while it still holds',
  needs: [5],
  measure() {
    const figures = safeStopFigures();
    const last = figures[2];
    return {
      figures,
      setting: `${OPERATIONS} operations of ${WORK_MEAN_S} s on average under a lease of ${TTL_S} s. ${TROUBLE_SHARE * 100}% meet trouble of ${TROUBLE_MEAN_S} s on average: half are paused, half are cut off from the lock service and work on.`,
      table: {
        columns: ['policy', 'write as zombies', 'of all', 'stop by themselves'],
        rows: figures.map((row) => [row.policy, row.zombie, percent(row.zombie / OPERATIONS, 3), row.stops]),
      },
      finding:
        'Renewal saves those who only work long. Stopping at half of the TTL saves those who are cut off, all of them, and those who are paused and look at the signal before they write.',
      tryIt: {
        invitation: `What is left are the pauses that strike within the last ${GAP_S * 1000} ms, between look and write.`,
        table: {
          columns: ['zombies left', 'work given up for it'],
          rows: [[last?.zombie ?? '', last?.stops ?? '']],
        },
        finding: 'Few, and not none: safe-stop is for saving work and trouble, the fence is for safety.',
      },
    };
  },
};
