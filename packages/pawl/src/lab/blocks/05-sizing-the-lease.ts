import { type Block, percent } from '../lesson.ts';
import { TwisterRandom } from '../random.ts';

const SEED = 11;
const HOLDERS = 20_000;
const WORK_MEAN_S = 0.5;
const SHORT_STALL_MEAN_S = 0.05;
const LONG_STALL_MEAN_S = 8;
const LONG_STALL_SHARE = 0.02;
const CRASH_RATE = 0.001;
const TTLS_S = [1, 5, 10, 30, 60];
const SWEEP_S = [0.5, 1, 2, 5, 10, 20, 40, 80];

interface Holders {
  /** How long each is busy, in s: its work and its stall. */
  readonly busyS: Float64Array;
  readonly crashes: number;
}

/** Pauses have a body and a tail: mostly scheduling, rarely a collector or a hypervisor. One distribution for both would hide the tail. */
export function drawHolders(): Holders {
  const random = new TwisterRandom(SEED);
  const busyS = new Float64Array(HOLDERS);
  let crashes = 0;
  for (let i = 0; i < HOLDERS; i += 1) {
    const workS = random.exponential(WORK_MEAN_S);
    const mean = random.random() > LONG_STALL_SHARE ? SHORT_STALL_MEAN_S : LONG_STALL_MEAN_S;
    busyS[i] = workS + random.exponential(mean);
    if (random.random() < CRASH_RATE) crashes += 1;
  }
  return { busyS: busyS.sort(), crashes };
}

/** A zombie outlives its lease; a crash shuts the lock for one TTL. */
export function priceLease({ busyS, crashes }: Holders, ttlS: number) {
  const outliving = busyS.length - firstAbove(busyS, ttlS);
  return { ttlS, zombies: outliving / busyS.length, wedgeS: (crashes * ttlS) / busyS.length };
}

/** The index of the first of the sorted values that is above `limit`. */
function firstAbove(sorted: Float64Array, limit: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? 0) > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

export function sizingFigures() {
  const holders = drawHolders();
  const rows = TTLS_S.map((ttlS) => {
    const price = priceLease(holders, ttlS);
    const label = price.zombies > 0.02 ? 'split brain' : price.wedgeS > 0.03 ? 'slow failover' : 'balanced';
    return { ...price, label };
  });
  const tryIt = SWEEP_S.map((ttlS) => {
    const price = priceLease(holders, ttlS);
    return { ...price, cost: price.zombies + price.wedgeS };
  });
  const best = tryIt.reduce((least, each) => (each.cost < least.cost ? each : least));
  return { rows, tryIt, tryItBestTtlS: best.ttlS };
}

export const sizingTheLease: Block = {
  number: 5,
  title: 'Sizing the lease',
  lesson: 'both ends of the scale are bad, in different coin',
  needs: [2],
  measure() {
    const figures = sizingFigures();
    return {
      figures,
      setting: `${HOLDERS} holders. Work takes ${WORK_MEAN_S} s on average; ${LONG_STALL_SHARE * 100}% meet a long stall (${LONG_STALL_MEAN_S} s on average), the others a short one; one in a thousand dies.`,
      table: {
        columns: ['TTL', 'zombies', 'wedge per operation', 'which is'],
        rows: figures.rows.map((row) => [
          `${row.ttlS} s`,
          percent(row.zombies),
          `${(row.wedgeS * 1000).toFixed(1)} ms`,
          row.label,
        ]),
      },
      finding:
        'Short leases make zombies, long ones make every death dear, and no row has both small. A fence takes the danger out of ' +
        'the zombie column; what is left of it is work done twice, and the TTL can be chosen for fail-over alone.',
      tryIt: {
        invitation:
          'Add both columns, a second of wedge counting as much as a zombie, and look for the least.',
        table: {
          columns: ['TTL', 'zombies', 'wedge', 'sum'],
          rows: figures.tryIt.map((row) => [
            `${row.ttlS} s`,
            percent(row.zombies),
            `${(row.wedgeS * 1000).toFixed(1)}ms`,
            row.cost.toFixed(4),
          ]),
        },
        finding: `The least is at ${figures.tryItBestTtlS} s and still leaves zombies: the least of a sum makes neither part small. pawl advise does this for a host of yours.`,
      },
    };
  },
};
