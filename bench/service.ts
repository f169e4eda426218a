/**
 * The service, as `pawl serve` on its embedded store in a process of its own, against Redis used the usual way, and against what remains of
 * it without any lock: cycles from one client process, hand-over with 2, 16 and 1,000 contenders, and what becomes of it with 10,000 sessions, 100,000 locks and 10,000 waiters on one
 * of them, also when it is killed and started again. Run nothing beside it.
 *
 *   node bench/service.ts [--seconds N] [--only speed|scale]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { connect } from '../packages/pawl/src/client/remote/connect.ts';
import { setNxPx } from '../packages/pawl/src/lab/torture/peers/set-nx-px.ts';
import { haveRedis, RedisServer } from '../packages/pawl/test/engines/redis-server.ts';
import { ServerProcess } from '../packages/pawl/test/faults/server-process.ts';
import { bareService } from './bare-service.ts';
import { type Contestant, TTL_MS } from './contestant.ts';
import { type Cycles, measureCycles, measureHandOver } from './measure.ts';
import { peer } from './peer.ts';
import { AT_ONCE } from './result.ts';
import { measureScale } from './service-scale.ts';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '3' }, only: { type: 'string' } },
});
const forMs = Number(values.seconds) * 1000;
/** Of `SET NX PX` without persistence, and with a flush for each write. */
const GOALS = { 'set-nx-px': { 64: 1.3, 512: 2 }, 'set-nx-px-flushed': { 1: 1.3, 64: 2, 512: 3 } } as const;

const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-'));
const server = new ServerProcess(join(folder, 'pawl.db'));
try {
  await server.start();
  if (values.only !== 'scale') await measureSpeed();
  if (values.only !== 'speed') await measureScale(server);
} finally {
  await server.kill();
  rmSync(folder, { recursive: true, force: true });
}

function service(): Contestant {
  return {
    name: 'service',
    kind: 'engine',
    waits: 'queue',
    connect: async () => {
      const pawl = await connect(server.url);
      return {
        acquire: async (lock) => {
          const lease = await pawl.acquire(lock, { ttlMs: TTL_MS });
          return () => lease.release();
        },
        close: () => pawl.close(),
      };
    },
  };
}

async function measureSpeed(): Promise<void> {
  const own = await cyclesOf(service());
  await handOvers(service());
  const bare = await cyclesOf(bareService(folder));
  printRatios('service', own, 'bare', bare, {});
  if (!haveRedis()) return console.log('skipped: no Redis to compare with');
  for (const [name, flushed] of [
    ['set-nx-px', false],
    ['set-nx-px-flushed', true],
  ] as const) {
    const redis = new RedisServer();
    await redis.start(flushed);
    try {
      const redisRow = peer(name, 'retries', [redis.port], setNxPx);
      const theirs = await cyclesOf(redisRow);
      printRatios('service', own, name, theirs, GOALS[name]);
      printRatios('bare', bare, name, theirs, {});
      await handOvers(redisRow);
    } finally {
      await redis.stop();
    }
  }
}

function printRatios(
  ours: string,
  own: ReadonlyMap<number, Cycles>,
  name: string,
  theirs: ReadonlyMap<number, Cycles>,
  goals: Partial<Record<number, number>>,
): void {
  for (const atOnce of AT_ONCE) {
    const ratio = (own.get(atOnce)?.perSecond ?? 0) / (theirs.get(atOnce)?.perSecond ?? 1);
    const goal = goals[atOnce];
    const verdict = goal === undefined ? '' : `   goal >= ${goal}: ${ratio >= goal ? 'reached' : 'missed'}`;
    console.log(`${ours} / ${name}, ${atOnce} at once: ${ratio.toFixed(2)}${verdict}`);
  }
}

async function cyclesOf(contestant: Contestant): Promise<Map<number, Cycles>> {
  const results = new Map<number, Cycles>();
  const client = await contestant.connect(1);
  for (const atOnce of AT_ONCE) {
    const cycles = await measureCycles(client, atOnce, forMs);
    results.set(atOnce, cycles);
    const { perSecond, p50Ms, p99Ms } = cycles;
    console.log(
      `${contestant.name.padEnd(18)} ${String(atOnce).padStart(4)} at once: ${perSecond.toFixed(0).padStart(7)} cycles/s, p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`,
    );
  }
  await client.close();
  return results;
}

async function handOvers(contestant: Contestant): Promise<void> {
  for (const contenders of [2, 16, 1000]) {
    const { p50Ms, p99Ms, count } = await measureHandOver(contestant, 1, forMs, contenders);
    console.log(
      `${contestant.name.padEnd(18)} hand-over with ${String(contenders).padStart(4)} contenders: p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms (${count})`,
    );
  }
}
