import { elapsedMs, now } from '../../client/deadline.ts';
import { SimulatedClock } from '../../testing/simulated-clock.ts';
import { type Block, yesNo } from '../lesson.ts';
import { TwisterRandom } from '../random.ts';

const TTL_S = 10;
const SEED = 47;
const LEASES = 20_000;
const TRIP_MEAN_S = 0.05;
const JUMP_MS = 30_000;

/**
 * How far a client's belief outlasts the engine's lease. The engine counts from when the request arrives; the client from before it
 * sent it, or from when it got the reply.
 */
function beliefFigures() {
  const random = new TwisterRandom(SEED);
  const rows = ['the reply', 'before the send'].map((from) => ({ from, outlasts: 0, sumMs: 0, worstMs: 0 }));
  for (let i = 0; i < LEASES; i += 1) {
    const thereMs = random.exponential(TRIP_MEAN_S / 2) * 1000;
    const backMs = random.exponential(TRIP_MEAN_S / 2) * 1000;
    for (const row of rows) {
      const startsMs = row.from === 'the reply' ? thereMs + backMs : 0;
      const tooLongMs = Math.max(0, startsMs - thereMs);
      if (tooLongMs > 0) row.outlasts += 1;
      row.sumMs += tooLongMs;
      row.worstMs = Math.max(row.worstMs, tooLongMs);
    }
  }
  return rows.map(({ from, outlasts, sumMs, worstMs }) => ({
    from,
    outlasts: outlasts / LEASES,
    meanMs: sumMs / LEASES,
    worstMs,
  }));
}

/** What each clock says has passed, after something happened to the clocks at once with 11 s of true time. */
async function clockRow(event: string, happen: (clock: SimulatedClock) => Promise<void> | void) {
  const clock = new SimulatedClock();
  const since = now(clock);
  await happen(clock);
  const ttlMs = TTL_S * 1000;
  return {
    event,
    monotonicBelieves: clock.monotonicMs() - since.monotonicMs < ttlMs,
    wallBelieves: clock.wallMs() - since.wallMs < ttlMs,
    largerBelieves: elapsedMs(clock, since) < ttlMs,
  };
}

export async function clocksFigures() {
  return {
    belief: beliefFigures(),
    clocks: [
      await clockRow('nothing: 11 s pass', (clock) => clock.advance(11_000)),
      await clockRow('the machine sleeps for 11 s', (clock) => clock.sleep(11_000)),
      await clockRow('11 s pass, the wall clock is set back 30 s', async (clock) => {
        await clock.advance(11_000);
        clock.jumpWall(-JUMP_MS);
      }),
      await clockRow('1 s passes, the wall clock is set forward 30 s', async (clock) => {
        await clock.advance(1000);
        clock.jumpWall(JUMP_MS);
      }),
    ],
  };
}

export const clocks: Block = {
  number: 16,
  title: 'Clocks',
  lesson: 'count from before the send, on the clock that says more',
  needs: [7],
  async measure() {
    const figures = await clocksFigures();
    return {
      figures,
      setting: `${LEASES} leases of ${TTL_S} s. The engine counts from when it grants; the client cannot see that moment. A round trip takes ${TRIP_MEAN_S * 1000} ms on average.`,
      table: {
        columns: ['the client counts from', 'believes longer than the engine', 'by, on average', 'at worst'],
        rows: figures.belief.map((row) => [
          row.from,
          `${(row.outlasts * 100).toFixed(0)}%`,
          `${row.meanMs.toFixed(1)} ms`,
          `${row.worstMs.toFixed(0)} ms`,
        ]),
      },
      finding:
        'Counted from the reply, every client believes too long, and longest when the network is slow. Counted from before the send, none does.',
      tryIt: {
        invitation: 'Which clock? The lease is over after 10 s. Who still believes in it?',
        table: {
          columns: ['what happened', 'monotonic', 'wall', 'the larger of both'],
          rows: figures.clocks.map((row) => [
            row.event,
            yesNo(row.monotonicBelieves),
            yesNo(row.wallBelieves),
            yesNo(row.largerBelieves),
          ]),
        },
        finding:
          'Each clock alone can be fooled into believing. The larger of both errs only towards stopping too soon, as in the last row.',
      },
    };
  },
};
