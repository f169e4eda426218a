/**
 * Real processes increment a counter under a lock, with and without the fence, while a nemesis stops and kills them, cuts their connections
 * and restarts the servers: `npm run torture -- [--quick] [--seconds N] [--only NAME,NAME] [--json] [--svg FILE]`. It ends with 1 where
 * a fenced run lost an update, did none, or could not be measured.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { drawChart } from './chart.ts';
import { Cleanup } from './cleanup.ts';
import { torment } from './nemesis.ts';
import { Run, type RunResult } from './run.ts';
import { LEGEND, resultsTable, type Unmeasured } from './table.ts';
import { type Group, groups, type Servers, type Target, TTL_MS } from './targets.ts';

const QUICK_SECONDS = 5;
/** So many groups at once where it has to be quick. */
const QUICK_LANES = 2;
const SECONDS = 30;
/** The servers are given so long to end after a signal, in ms. */
const STOP_LIMIT_MS = 5000;
const DELAY_RESOLUTION_MS = 10;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    seconds: { type: 'string' },
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
    svg: { type: 'string' },
  },
});
const forSeconds = Number(values.seconds ?? (values.quick ? QUICK_SECONDS : SECONDS));
if (!(forSeconds > 0)) throw new Error(`--seconds takes a number above 0, not ${values.seconds}.`);
const only = values.only?.split(',');
const known = groups.flatMap(({ targets }) => targets.map(({ name }) => name));
const unknown = only?.filter((name) => !known.includes(name)) ?? [];
if (unknown.length > 0) throw new Error(`There is no ${unknown.join(', ')}; there are ${known.join(', ')}.`);

const cleanups: Cleanup[] = [];
let ending = false;
function end(): void {
  if (ending) return;
  ending = true;
  // A server that ended by itself, such as by the same Ctrl-C, may never be seen to end.
  setTimeout(() => process.exit(1), STOP_LIMIT_MS);
  Promise.allSettled(cleanups.map((cleanup) => cleanup.run())).finally(() => process.exit(1));
}
process.on('SIGINT', end).on('SIGTERM', end).on('SIGHUP', end);
process.on('uncaughtException', (error) => {
  console.error(error);
  end();
});

const results: RunResult[] = [];
const unmeasured: Unmeasured[] = [];

/** A group whose servers are running. */
interface Stage {
  readonly targets: readonly Target[];
  readonly servers: Servers;
  readonly cleanup: Cleanup;
}

async function prepare(group: Group): Promise<Stage | undefined> {
  const targets = group.targets.filter(({ name }) => only === undefined || only.includes(name));
  if (targets.length === 0) return undefined;
  if (!group.available()) {
    leaveOut(targets, `skipped: no ${group.name} on this machine`);
    return undefined;
  }
  const cleanup = new Cleanup();
  cleanups.push(cleanup);
  try {
    return { targets, servers: await group.start((stopServers) => cleanup.add(stopServers)), cleanup };
  } catch (error) {
    await fail(targets, error);
    await cleanup.run();
    return undefined;
  }
}

async function torture({ targets, servers, cleanup }: Stage): Promise<void> {
  try {
    process.stderr.write(`${targets.map(({ name }) => name).join(', ')}\n`);
    const folder = mkdtempSync(join(tmpdir(), 'pawl-torture-'));
    cleanup.add(() => rmSync(folder, { recursive: true, force: true }));
    const runs = targets.flatMap((target) =>
      (target.kind === 'pawl' ? [true, false] : [false]).map(
        (fenced) => new Run(target, { fenced, ports: servers.ports, folder, ttlMs: TTL_MS }),
      ),
    );
    cleanup.add(() => Promise.all(runs.map((run) => run.stop())));
    await Promise.all(runs.map((run) => run.start()));
    await torment(runs, servers, TTL_MS, forSeconds * 1000);
    for (const run of runs) results.push(await run.finish());
  } catch (error) {
    await fail(targets, error);
  } finally {
    await haltIfEnding();
    await cleanup.run();
  }
}

function leaveOut(targets: readonly Target[], why: string): void {
  unmeasured.push(...targets.map(({ name }) => ({ target: name, why })));
}

async function fail(targets: readonly Target[], error: unknown): Promise<void> {
  await haltIfEnding();
  process.exitCode = 1;
  leaveOut(targets, `failed: ${error instanceof Error ? error.message : String(error)}`);
}

/** Nothing more is started or counted while all is being stopped. */
async function haltIfEnding(): Promise<void> {
  if (ending) await new Promise(() => {});
}

const machine = {
  node: process.version,
  cpus: availableParallelism(),
  loadBefore: loadavg()[0] ?? 0,
  seconds: forSeconds,
  ttlMs: TTL_MS,
};
// All servers first: what starts them stops this process for seconds, and with it the networks of all runs.
const waiting: Stage[] = [];
for (const group of groups) {
  const stage = await prepare(group);
  await haltIfEnding();
  if (stage !== undefined) waiting.push(stage);
}
const delays = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
delays.enable();
// Each lane takes the next when it is done with one.
await Promise.all(
  Array.from({ length: values.quick ? QUICK_LANES : 1 }, async () => {
    for (let stage = waiting.shift(); stage !== undefined; stage = waiting.shift()) await torture(stage);
  }),
);
/** For how long at most this process, with the networks of all runs, did not get on. */
const heldUpMs = Math.round(delays.max / 1e6) || 0;
results.sort((a, b) => known.indexOf(a.target) - known.indexOf(b.target));

const fencedOnesHeld = results
  .filter(({ fenced }) => fenced)
  .every(({ lost, lateWrites, updates }) => lost === 0 && lateWrites === 0 && updates > 0);
if (!fencedOnesHeld) process.exitCode = 1;
if (values.svg !== undefined) writeFileSync(values.svg, drawChart(results));
if (values.json) {
  console.log(
    JSON.stringify({ machine: { ...machine, heldUpMs }, fencedOnesHeld, results, unmeasured }, null, 2),
  );
} else {
  const load = machine.loadBefore.toFixed(1);
  console.log(
    `Node ${machine.node}, ${machine.cpus} CPUs, load ${load} before; ${forSeconds} s a target, TTL ${TTL_MS / 1000} s; the nemesis itself was held up for ${heldUpMs} ms at most\n`,
  );
  console.log(`${resultsTable(results, unmeasured)}\n\n${LEGEND}`);
  if (!fencedOnesHeld) console.log('\nA fenced run lost updates, or did none.');
}
process.exit();
