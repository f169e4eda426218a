import { describe, expect, it } from 'vitest';
import { sessionsFigures } from '../../src/lab/blocks/07-sessions.ts';
import { convoyFigures } from '../../src/lab/blocks/08-convoys.ts';
import { retryFigures } from '../../src/lab/blocks/09-retries.ts';
import { raiseFigures } from '../../src/lab/blocks/10-raise.ts';
import { tokenReuseFigures } from '../../src/lab/blocks/11-token-reuse.ts';
import { semaphoreFigures } from '../../src/lab/blocks/12-semaphores.ts';
import { outcome, safeStopFigures } from '../../src/lab/blocks/13-safe-stop.ts';
import { herdFigures } from '../../src/lab/blocks/14-herd.ts';
import { delayedWrite, inFlightFigures } from '../../src/lab/blocks/15-in-flight.ts';
import { clocksFigures } from '../../src/lab/blocks/16-clocks.ts';

describe('what the further blocks measure', () => {
  it('S3: 7, one session for a hundred locks, whose end is final', () => {
    expect(sessionsFigures()).toEqual({
      locks: 100,
      keepAlivesForEach: 1700,
      keepAlivesForAll: 17,
      lastKeepAliveS: 56.67,
      heldBefore: 100,
      heldAfter: 0,
      lateKeepAlive: false,
    });
  });

  it('L2: 8, hand-over keeps order and pays for every switch, barging the other way round', () => {
    const { rules, curve } = convoyFigures();
    expect(rules).toEqual([
      { rule: 'hand-over', switches: 100, passes: 0, longestWait: 3 },
      { rule: 'barging', switches: 10, passes: 90, longestWait: 30 },
    ]);
    for (const { switchMs, handOver, barging } of curve) {
      expect(handOver).toBe(Math.round(1000 / (1 + switchMs)));
      expect(barging).toBe(Math.round(1000 / (1 + switchMs / 10)));
    }
    expect(curve.map((row) => row.switchMs)).toEqual([0, 0.1, 0.5, 1, 2, 5, 10]);
  });

  it('S5: 9, a retry under the same id is the same acquire, and a late duplicate is none', () => {
    expect(retryFigures()).toEqual({
      rows: [
        { sameId: false, firstToken: 1, secondToken: null, waitsS: 10 },
        { sameId: true, firstToken: 1, secondToken: 1, waitsS: 0 },
      ],
      tryIt: [
        { remembered: false, grantedAgain: true, wedgedForB: true },
        { remembered: true, grantedAgain: false, wedgedForB: false },
      ],
    });
  });

  it('S8: 10, only a raised fence keeps the update', () => {
    expect(raiseFigures()).toEqual({
      rows: [
        { raises: false, aAccepted: true, bAccepted: true, final: 150, lost: 200 },
        { raises: true, aAccepted: false, bAccepted: true, final: 150, lost: 0 },
      ],
      tryIt: { afterRetry: 350, expected: 350 },
    });
  });

  it('S1: 11, a counter that forgets turns the fence round', () => {
    expect(tokenReuseFigures().rows).toEqual([
      { counter: 'in memory', zombie: 5, next: 1, nextAccepted: false, zombieAccepted: true },
      { counter: 'as durable as the lock', zombie: 5, next: 6, nextAccepted: true, zombieAccepted: false },
    ]);
  });

  it('S7: 12, a sequence for each slot refuses no valid holder', () => {
    expect(semaphoreFigures()).toEqual({
      permits: 3,
      tokens: [1, 2, 3],
      oneSequence: { accepted: 12, refused: 18 },
      perSlot: { accepted: 30, refused: 0 },
    });
  });

  it('C2, C3: 13, renewal and safe-stop leave few zombies, and not none', () => {
    expect(safeStopFigures()).toEqual([
      { policy: 'no renewal', writes: 18005, zombie: 1995, stops: 0 },
      { policy: 'renewal at TTL/3', writes: 19712, zombie: 288, stops: 0 },
      { policy: 'renewal, stop at TTL/2', writes: 19553, zombie: 1, stops: 446 },
    ]);
    const cutOff = { workS: 20, trouble: 'outage', troubleS: 30, when: 0.1 } as const;
    expect(outcome(cutOff, 'renewal at TTL/3')).toBe('zombie');
    expect(outcome(cutOff, 'renewal, stop at TTL/2')).toBe('stops');
    const atTheLast = { workS: 1, trouble: 'stall', troubleS: 30, when: 0.9999 } as const;
    expect(outcome(atTheLast, 'renewal, stop at TTL/2')).toBe('zombie');
  });

  it('L3: 14, one release wakes one', () => {
    expect(herdFigures()).toEqual([2, 10, 50].map((n) => ({ waiters: n, all: (n * (n + 1)) / 2, one: n })));
  });

  it('S7: 15, a write delayed in flight lands late without any pause', () => {
    expect(inFlightFigures()).toEqual(
      [0.01, 0.05, 0.2, 0.5].map((delayS) => ({
        delayS,
        heldAtSend: true,
        unfenced: delayS > 0.3 ? 200 : 100,
        fenced: 100,
      })),
    );
    expect(delayedWrite(0.5, false).writers).toBe('BA');
    expect(delayedWrite(0.5, true).writers).toBe('B');
  });

  it('C1: 16, counted from before the send, on the larger of two clocks, nobody believes too long', async () => {
    const { belief, clocks } = await clocksFigures();
    expect(belief[0]).toMatchObject({ from: 'the reply', outlasts: 1 });
    expect(belief[0]?.meanMs).toBeCloseTo(25.2398, 4);
    expect(belief[0]?.worstMs).toBeCloseTo(233.1558, 4);
    expect(belief[1]).toEqual({ from: 'before the send', outlasts: 0, meanMs: 0, worstMs: 0 });
    expect(clocks.map((row) => [row.monotonicBelieves, row.wallBelieves, row.largerBelieves])).toEqual([
      [false, false, false],
      [true, false, false],
      [false, true, false],
      [true, false, false],
    ]);
  });
});
