import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { readStealMs, readThrottling, type Throttling, throttlingBetween } from './kernel.ts';

/** How long one sample of the event loop is meant to take, in ms. */
const SAMPLE_MS = 5;
/** What is shorter than this is the timer's own inexactness and no pause, in ms. */
const PAUSE_FROM_MS = 1;
/** How often the engine is asked, in ms. */
const ROUND_TRIP_EVERY_MS = 250;

/** What a host was seen to do. */
export interface HostMeasurement {
  readonly forMs: number;
  /** Pauses of the event loop in the order they happened: when, and for how long, in ms. */
  readonly pauses: readonly { readonly atMs: number; readonly forMs: number }[];
  /** Round trips to the engine, in ms; empty where none was named. */
  readonly roundTripsMs: readonly number[];
  /** What the kernel took away meanwhile; `undefined` where it does not say. */
  readonly throttling: Throttling | undefined;
  /** Time that the hypervisor gave to others, in ms over all cores; `undefined` where the kernel does not say. */
  readonly stealMs: number | undefined;
}

/**
 * Measures this process's host: how late the event loop runs, what a CPU quota and the hypervisor take, and how long the
 * engine takes to answer.
 *
 * @param forMs from 100; the longer, the rarer the pauses that are seen.
 * @param askEngine one round trip to the engine, or `undefined`.
 */
export async function measureHost(
  forMs: number,
  askEngine: (() => Promise<unknown>) | undefined,
): Promise<HostMeasurement> {
  const throttlingBefore = readThrottling();
  const stealBeforeMs = readStealMs();
  const startedAt = performance.now();
  const elapsed = () => performance.now() - startedAt;
  const roundTrips = askEngine === undefined ? [] : measureRoundTrips(askEngine, () => elapsed() < forMs);
  const pauses: { atMs: number; forMs: number }[] = [];
  while (elapsed() < forMs) {
    const atMs = elapsed();
    await wait(SAMPLE_MS);
    const lateMs = elapsed() - atMs - SAMPLE_MS;
    if (lateMs >= PAUSE_FROM_MS) pauses.push({ atMs, forMs: lateMs });
  }
  const roundTripsMs = await roundTrips;
  const stealAfterMs = readStealMs();
  return {
    forMs: elapsed(),
    pauses,
    roundTripsMs,
    throttling: throttlingBetween(throttlingBefore, readThrottling()),
    stealMs:
      stealBeforeMs === undefined || stealAfterMs === undefined ? undefined : stealAfterMs - stealBeforeMs,
  };
}

async function measureRoundTrips(ask: () => Promise<unknown>, goOn: () => boolean): Promise<number[]> {
  const roundTripsMs: number[] = [];
  while (goOn()) {
    const sentAt = performance.now();
    await ask();
    roundTripsMs.push(performance.now() - sentAt);
    await wait(ROUND_TRIP_EVERY_MS);
  }
  return roundTripsMs;
}

/** Cuts what was measured into operations of `workMs` and sums the pauses in each: the stall that each would have met. */
export function stallsPerOperation(
  measured: Pick<HostMeasurement, 'forMs' | 'pauses'>,
  workMs: number,
): number[] {
  const stalls = new Array<number>(Math.max(1, Math.floor(measured.forMs / workMs))).fill(0);
  for (const { atMs, forMs } of measured.pauses) {
    const index = Math.min(stalls.length - 1, Math.floor(atMs / workMs));
    stalls[index] = (stalls[index] ?? 0) + forMs;
  }
  return stalls;
}

/** The value below which `share` (0 to 1) of the values lie; 0 for none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}
