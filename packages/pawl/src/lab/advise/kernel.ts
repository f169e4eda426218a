import { readFileSync } from 'node:fs';

/** What a CPU quota cost. */
export interface Throttling {
  /** Cores that the quota allows, or `null` for no quota. */
  readonly quotaCores: number | null;
  readonly periods: number;
  readonly throttledPeriods: number;
  readonly throttledMs: number;
}

/** The counters of this process's control group, of either version; `undefined` where the kernel has none. */
export function readThrottling(): Throttling | undefined {
  const groups = readText('/proc/self/cgroup') ?? '';
  return throttlingV2(groups) ?? throttlingV1(groups);
}

/** What happened between two readings. */
export function throttlingBetween(
  before: Throttling | undefined,
  after: Throttling | undefined,
): Throttling | undefined {
  if (before === undefined || after === undefined) return undefined;
  return {
    quotaCores: after.quotaCores,
    periods: after.periods - before.periods,
    throttledPeriods: after.throttledPeriods - before.throttledPeriods,
    throttledMs: after.throttledMs - before.throttledMs,
  };
}

/** Time the hypervisor gave to others, in ms over all cores: the eighth number of /proc/stat, in ticks of 10 ms. */
export function readStealMs(): number | undefined {
  const ticks = readText('/proc/stat')?.match(/^cpu +(?:\d+ +){7}(\d+)/)?.[1];
  return ticks === undefined ? undefined : Number(ticks) * 10;
}

function throttlingV2(groups: string): Throttling | undefined {
  const own = groups.match(/^0::(.*)$/m)?.[1];
  // In a container the own group may be the root of what can be seen.
  for (const group of own === undefined ? [] : [own, '']) {
    const stat = readText(`/sys/fs/cgroup${group}/cpu.stat`);
    if (stat === undefined || !stat.includes('nr_throttled')) continue;
    const [quota, period] = (readText(`/sys/fs/cgroup${group}/cpu.max`) ?? 'max').trim().split(' ');
    const quotaCores = quota === 'max' ? null : Number(quota) / Number(period);
    return { ...periodsOf(stat), quotaCores, throttledMs: counter(stat, 'throttled_usec') / 1000 };
  }
  return undefined;
}

function throttlingV1(groups: string): Throttling | undefined {
  const own = groups.match(/^\d+:(?:[\w,]+,)?cpu(?:,[\w,]+)?:(.*)$/m)?.[1];
  for (const group of own === undefined ? [] : [own, '']) {
    const folder = `/sys/fs/cgroup/cpu${group}`;
    const stat = readText(`${folder}/cpu.stat`);
    if (stat === undefined) continue;
    const quota = Number(readText(`${folder}/cpu.cfs_quota_us`) ?? -1);
    const period = Number(readText(`${folder}/cpu.cfs_period_us`) ?? 100_000);
    const quotaCores = quota > 0 ? quota / period : null;
    return { ...periodsOf(stat), quotaCores, throttledMs: counter(stat, 'throttled_time') / 1_000_000 };
  }
  return undefined;
}

function periodsOf(stat: string): Pick<Throttling, 'periods' | 'throttledPeriods'> {
  return { periods: counter(stat, 'nr_periods'), throttledPeriods: counter(stat, 'nr_throttled') };
}

function counter(stat: string, name: string): number {
  return Number(stat.match(new RegExp(`^${name} (\\d+)$`, 'm'))?.[1] ?? 0);
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
