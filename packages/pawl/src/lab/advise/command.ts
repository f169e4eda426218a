import { readFileSync } from 'node:fs';
import type { EngineGuarantees } from '../../engines/engine.ts';
import { InvalidArgumentError, TtlTooShortError } from '../../errors.ts';
import { type HostMeasurement, measureHost, quantile, stallsPerOperation } from './measure.ts';
import { type Advice, priceTtls } from './price.ts';

/** What to measure and price. */
export interface AdviseOptions {
  /** How long to measure, in ms, from 100. */
  readonly forMs: number;
  /** Mean of the work under the lock, in ms, from 1. */
  readonly workMs: number;
  /** The share of holders that die while they hold, 0 to 1. */
  readonly crashRate: number;
  /** A file of measured pauses, one number in ms a line, instead of measuring this host. */
  readonly pauses?: string | undefined;
  readonly ttlsMs?: readonly number[] | undefined;
  /** The engine to ask: what it promises, and one round trip. */
  readonly engine?: { readonly guarantees: EngineGuarantees; ask(): Promise<unknown> } | undefined;
}

/** What was measured and what follows from it. */
export interface AdviceReport {
  readonly workMs: number;
  readonly crashRate: number;
  readonly measured: HostMeasurement | null;
  readonly stallsMs: {
    readonly count: number;
    readonly p50: number;
    readonly p99: number;
    readonly p999: number;
    readonly max: number;
  };
  readonly advice: Advice;
}

const TTLS_MS = [100, 250, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];
/** So long after a session's end an engine that was not named is taken to notice it, in ms (L1). */
const SWEEP_MS = 250;
/** So long a renewal is taken to last where no engine was named, in ms. */
const ROUND_TRIP_MS = 1;

/**
 * Measures this host, or reads pauses from a file, and prices TTLs on it.
 *
 * @param random uniform numbers from 0 up to 1.
 * @throws InvalidArgumentError where the file of pauses has none, or a line that is no number.
 */
export async function advise(options: AdviseOptions, random: () => number): Promise<AdviceReport> {
  const { forMs, workMs, crashRate, engine } = options;
  if (!(crashRate >= 0 && crashRate <= 1))
    throw new InvalidArgumentError('crashRate', 'from 0 to 1', crashRate);
  const ttlsMs = usableTtls(options.ttlsMs ?? TTLS_MS, options);
  const measured =
    options.pauses === undefined ? await measureHost(forMs, engine && (() => engine.ask())) : null;
  const stalls = measured === null ? readPauses(options.pauses ?? '') : stallsPerOperation(measured, workMs);
  const roundTripMs =
    measured === null ? ROUND_TRIP_MS : quantile(measured.roundTripsMs, 0.5) || ROUND_TRIP_MS;
  const workload = { workMs, crashRate, stallsMs: stalls, roundTripMs };
  return {
    workMs,
    crashRate,
    measured,
    stallsMs: {
      count: stalls.length,
      p50: quantile(stalls, 0.5),
      p99: quantile(stalls, 0.99),
      p999: quantile(stalls, 0.999),
      max: quantile(stalls, 1),
    },
    advice: priceTtls(workload, ttlsMs, engine?.guarantees.sweepMs ?? SWEEP_MS, random),
  };
}

function usableTtls(ttlsMs: readonly number[], { engine }: AdviseOptions): readonly number[] {
  const leastMs = engine?.guarantees.minTtlMs ?? 1;
  const usable = ttlsMs.filter((ttlMs) => ttlMs >= leastMs);
  if (usable.length === 0) {
    throw new TtlTooShortError('ttl', Math.max(...ttlsMs), leastMs, engine?.guarantees.engine ?? '');
  }
  return usable;
}

function readPauses(path: string): number[] {
  const lines = readLines(path)
    .split('\n')
    .filter((line) => line.trim() !== '');
  const pauses = lines.map(Number);
  const wrong = pauses.findIndex((pause) => !(pause >= 0 && Number.isFinite(pause)));
  if (wrong >= 0)
    throw new InvalidArgumentError(`line ${wrong + 1} of the pauses`, 'a number of ms from 0', lines[wrong]);
  if (pauses.length === 0) throw new InvalidArgumentError('pauses', 'a file with at least one number', path);
  return pauses;
}

function readLines(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw new InvalidArgumentError('pauses', 'a file that can be read', path);
  }
}

/** The report as text. */
export function renderAdvice(report: AdviceReport): string {
  const { measured, stallsMs, advice, workMs, crashRate } = report;
  const lines: string[] = [];
  if (measured !== null) lines.push(...hostLines(measured), '');
  lines.push(
    `Stalls met by an operation of ${workMs} ms: half below ${ms(stallsMs.p50)}, 99% below ${ms(stallsMs.p99)}, ` +
      `99.9% below ${ms(stallsMs.p999)}, longest ${ms(stallsMs.max)} (of ${stallsMs.count}).`,
    `Priced for work of ${workMs} ms on average and ${crashRate * 1000} crashes in 1000 operations:`,
    '',
    '     TTL  zombies, no renewal  zombies, renewed  wedge per op  renewals per op  failover  cost per op, fenced',
  );
  for (const price of advice.prices) {
    const cells = [
      duration(price.ttlMs).padStart(8),
      percent(price.zombiesUnrenewed).padStart(21),
      percent(price.zombiesRenewed).padStart(18),
      ms(price.wedgeMs).padStart(14),
      ms(price.renewalMs).padStart(17),
      duration(price.failoverMs).padStart(10),
      ms(price.fencedCostMs).padStart(21),
    ];
    lines.push(`${cells.join('')}${price === advice.best ? '  <' : ''}`);
  }
  lines.push('', ...reasonLines(advice));
  return `${lines.join('\n')}\n`;
}

function hostLines({ forMs, pauses, roundTripsMs, throttling, stealMs }: HostMeasurement): string[] {
  const late = pauses.map((pause) => pause.forMs);
  const lines = [
    `Measured for ${duration(Math.round(forMs))}. The event loop paused ${late.length} times for 1 ms or more: ` +
      `${ms(quantile(late, 0.5))} (half), ${ms(quantile(late, 0.99))} (99%), ${ms(quantile(late, 1))} (worst).`,
  ];
  if (throttling === undefined) lines.push('CPU quota: the kernel does not say.');
  else if (throttling.quotaCores === null) lines.push('CPU quota: none.');
  else {
    lines.push(
      `CPU quota: ${throttling.quotaCores} cores; throttled in ${throttling.throttledPeriods} of ${throttling.periods} ` +
        `periods, for ${ms(throttling.throttledMs)} in all.`,
    );
  }
  lines.push(stealMs === undefined ? 'Steal: the kernel does not say.' : `Steal: ${ms(stealMs)}.`);
  if (roundTripsMs.length > 0) {
    lines.push(
      `Round trip to the engine: half below ${ms(quantile(roundTripsMs, 0.5))}, 99% below ${ms(quantile(roundTripsMs, 0.99))}, ` +
        `longest ${ms(quantile(roundTripsMs, 1))}.`,
    );
  }
  return lines;
}

function reasonLines({ best }: Advice): string[] {
  const zombies =
    best.zombiesRenewed === 0 ? 'no operation' : `${percent(best.zombiesRenewed)} of the operations`;
  return [
    `Take ${duration(best.ttlMs)}: ${zombies} outlived its lease, and dead holders and renewals cost ${ms(best.wedgeMs + best.renewalMs)}`,
    'per operation. Shorter makes more zombies and more renewals, longer makes dead holders dearer.',
    'With a fence a zombie costs its own work, done again. Without one each is a write over somebody else’s, and no TTL',
    'makes that impossible: only rarer than what was measured here.',
  ];
}

function duration(valueMs: number): string {
  return valueMs >= 1000 ? `${Number((valueMs / 1000).toFixed(2))} s` : `${Math.round(valueMs)} ms`;
}

function ms(value: number): string {
  return `${value >= 100 ? value.toFixed(0) : value.toFixed(value >= 1 ? 1 : 3)} ms`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)}%`;
}
