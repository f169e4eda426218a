import { type Measured, percent, type Table } from './lesson.ts';
import { TwisterRandom } from './random.ts';
import { FencedResource } from './resource.ts';

const SEED = 23;
const OPERATIONS = 20_000;
const TTL_S = 5;
const WORK_MEAN_S = 0.5;
const SHORT_STALL_MEAN_S = 0.05;
const LONG_STALL_MEAN_S = 12;
const LONG_STALL_SHARE = 0.05;
/** A stall this long is taken for a death where nothing expires. */
const DEAD_AFTER_S = 30;
const CHECK_GAP_S = 0.002;
const GAPS_S = [0.001, 0.01, 0.1, 1];

interface Operation {
  readonly workS: number;
  readonly stallS: number;
  /** When the stall strikes, as a part of the operation. */
  readonly when: number;
}

function drawOperations(): readonly Operation[] {
  const random = new TwisterRandom(SEED);
  return Array.from({ length: OPERATIONS }, () => {
    const workS = random.exponential(WORK_MEAN_S);
    const mean = random.random() > LONG_STALL_SHARE ? SHORT_STALL_MEAN_S : LONG_STALL_MEAN_S;
    const stallS = random.exponential(mean);
    const when = random.random();
    // One more number an operation, for whether it crashes: no design here asks for it.
    random.random();
    return { workS, stallS, when };
  });
}

function outlivesLease({ workS, stallS }: Operation): boolean {
  return workS + stallS > TTL_S;
}

/** The check in the client fails where the stall strikes between it and the write. */
function slipsThrough({ workS, when }: Operation, gapS: number): boolean {
  return when * (workS + gapS) > workS;
}

/** Whether a write that comes after the next holder's is let through: the operation's own timing does not matter to a fence. */
function passesFence(): boolean {
  const resource = new FencedResource();
  resource.writeFenced('next', 100, 2n);
  return resource.writeFenced('late', 200, 1n);
}

export function assemblyFigures() {
  const operations = drawOperations();
  const outliving = operations.filter(outlivesLease);
  const wedged = operations.filter(({ stallS }) => stallS > DEAD_AFTER_S).length;
  const leaks = (gapS: number) => outliving.filter((operation) => slipsThrough(operation, gapS)).length;
  const row = (design: string, lost: number, wedges: number) => ({
    design,
    lost,
    wedged: wedges,
    rate: lost / OPERATIONS,
  });
  return {
    operations: OPERATIONS,
    rows: [
      row('no expiry', 0, wedged),
      row('lease only', outliving.length, 0),
      row('lease + client check', leaks(CHECK_GAP_S), 0),
      row('lease + fencing', outliving.filter(passesFence).length, 0),
    ],
    gaps: GAPS_S.map((gapS) => ({ gapS, lost: leaks(gapS), share: leaks(gapS) / outliving.length })),
  };
}

/** What part of the lost updates a check in the client lets through, `gapS` before the write. */
export function slipShare(gapS: number): number {
  const outliving = drawOperations().filter(outlivesLease);
  return outliving.filter((operation) => slipsThrough(operation, gapS)).length / outliving.length;
}

export interface Assembly extends Measured {
  readonly figures: ReturnType<typeof assemblyFigures>;
}

/** All of it together: one scenario, four designs. */
export function assembly(): Assembly {
  const figures = assemblyFigures();
  const gapTable: Table = {
    columns: ['gap between check and write', 'lost updates', 'of those without a check'],
    rows: figures.gaps.map(({ gapS, lost, share }) => [`${gapS * 1000} ms`, lost, percent(share, 1)]),
  };
  return {
    figures,
    setting: `${OPERATIONS} operations under a lease of ${TTL_S} s, each with a stall that strikes at any moment; ${LONG_STALL_SHARE * 100}% of the stalls are long.`,
    table: {
      columns: ['design', 'lost updates', 'wedged', 'rate'],
      rows: figures.rows.map(({ design, lost, wedged, rate }) => [
        design,
        lost,
        wedged,
        lost === 0 ? '0' : percent(rate, 3),
      ]),
    },
    finding:
      'Without expiry nothing is lost and everything stops. With a lease nothing stops and updates are lost. Only the fence is at ' +
      'zero, and it is so by construction: there is no parameter in it, no latency it depends on, no load under which it gives way.',
    tryIt: {
      invitation:
        'How much does the check in the client save? That depends on the time between it and the write.',
      table: gapTable,
      finding:
        'One slow call between check and write gives most of the losses back. A rate that hangs on a latency is low in a test and ' +
        'high under load. A lock excludes processes that are alive and on time; the fence protects the data from all of them.',
    },
  };
}
