import type { Contestant, LockClient } from './contestant.ts';

const CONTENDERS = 16;
/** A holder keeps the lock so long: most of those who had it before have queued again by then. */
const HOLD_MS = 2;
/**
 * After the next grant, a contender asks again within so many ms, at random. Without that those who poll would do so in step with one
 * another and with the holder, which processes of their own do not.
 */
const PAUSE_MS = 10;
/** So much of a cell's time goes before it, to warm up. */
const WARM_UP_SHARE = 0.5;
/** Where hand-overs are slow, a cell goes on until it has so many, but not for longer than so many times its time. */
const FEWEST_HAND_OVERS = 100;
const LONGEST_TIMES = 5;

export interface Cycles {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface HandOver {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly count: number;
}

/** Acquires and releases, each of so many at once on a lock of its own. */
export async function measureCycles(client: LockClient, atOnce: number, forMs: number): Promise<Cycles> {
  await cycle(client, atOnce, forMs * WARM_UP_SHARE);
  const startedAt = performance.now();
  const timesMs = await cycle(client, atOnce, forMs);
  const perSecond = (timesMs.length * 1000) / (performance.now() - startedAt);
  return { perSecond, ...quantiles(timesMs) };
}

async function cycle(client: LockClient, atOnce: number, forMs: number): Promise<number[]> {
  const timesMs: number[] = [];
  const until = performance.now() + forMs;
  const work = async (lock: string) => {
    for (let at = performance.now(); at < until; ) {
      const release = await client.acquire(lock);
      await release();
      const now = performance.now();
      timesMs.push(now - at);
      at = now;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, (_, i) => work(`own-${i}`)));
  return timesMs;
}

/** Contenders on one lock: from the call that releases it to the grant of another who was waiting. */
export async function measureHandOver(
  contestant: Contestant,
  clients: number,
  forMs: number,
  contenders = CONTENDERS,
): Promise<HandOver> {
  const connected: LockClient[] = [];
  try {
    for (let i = 0; i < clients; i += 1) connected.push(await contestant.connect(clients));
    const timesMs = await handOver(connected, `contended-by-${contenders}-of-${clients}`, forMs, contenders);
    return { ...quantiles(timesMs), count: timesMs.length };
  } finally {
    for (const client of connected) await client.close();
  }
}

/** By one client for all, and by one for each. */
export const HAND_OVER_CLIENTS = { shared: 1, each: CONTENDERS } as const;

async function handOver(
  clients: readonly LockClient[],
  lock: string,
  forMs: number,
  contending: number,
): Promise<number[]> {
  const timesMs: number[] = [];
  const startedAt = performance.now();
  const warmUntil = startedAt + forMs * WARM_UP_SHARE;
  const over = () => {
    const passedMs = performance.now() - warmUntil;
    return passedMs >= forMs && (timesMs.length >= FEWEST_HAND_OVERS || passedMs >= forMs * LONGEST_TIMES);
  };
  let released: { atMs: number; granted: () => void } | undefined;
  const contend = async (client: LockClient) => {
    while (!over()) {
      const release = await client.acquire(lock);
      const now = performance.now();
      if (released !== undefined && now >= warmUntil) timesMs.push(now - released.atMs);
      released?.granted();
      await pause(HOLD_MS);
      const next = Promise.withResolvers<void>();
      released = { atMs: performance.now(), granted: next.resolve };
      await release();
      if (over()) break;
      // Else whoever released would be the first to ask again, and where there is no queue, to get it.
      await next.promise;
      await pause(Math.random() * PAUSE_MS);
    }
    released?.granted();
  };
  const contenders = Array.from({ length: contending }, (_, i) => clients[i % clients.length]);
  await Promise.all(contenders.filter((client) => client !== undefined).map(contend));
  return timesMs;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function quantiles(timesMs: number[]): { p50Ms: number; p99Ms: number } {
  const sorted = Float64Array.from(timesMs).sort();
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
  return { p50Ms: at(0.5), p99Ms: at(0.99) };
}
