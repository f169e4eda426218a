/**
 * What a lock costs on each engine and on its peers beside it, on the same servers in the same run: acquire and release in a cycle, and
 * the hand-over to a waiter. `--only NAME,NAME` measures those rows, `--seconds N` is the time per cell, `--json` prints JSON. Run
 * nothing beside it.
 */
import { statfsSync } from 'node:fs';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import type { Contestant, Stage } from './contestant.ts';
import { HAND_OVER_CLIENTS, measureCycles, measureHandOver } from './measure.ts';
import { ratiosOf } from './ratios.ts';
import { AT_ONCE, type Result } from './result.ts';
import { stages } from './stages.ts';
import { cyclesTable, handOverTable, ratiosTable } from './tables.ts';

/** A cell that takes so much longer than its time is given up, in ms. */
const GRACE_MS = 60_000;
/** The servers are given so long to end after a signal, in ms. */
const STOP_LIMIT_MS = 5000;
const TMPFS = 0x01021994;

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    seconds: { type: 'string', default: '2' },
    json: { type: 'boolean', default: false },
  },
});
const forMs = Number(values.seconds) * 1000;
if (!(forMs > 0)) throw new Error(`--seconds takes a number above 0, not ${values.seconds}.`);
const only = values.only?.split(',');
const known = stages.flatMap(({ names }) => names);
const unknown = only?.filter((name) => !known.includes(name)) ?? [];
if (unknown.length > 0) throw new Error(`There is no ${unknown.join(', ')}; there are ${known.join(', ')}.`);
const wanted = (name: string) => only === undefined || only.includes(name);

let stopServer: (() => Promise<void>) | undefined;
async function stop(): Promise<void> {
  const stopping = stopServer;
  stopServer = undefined;
  await stopping?.();
}

let ending = false;
function end(): void {
  ending = true;
  // A server that ended by itself, such as by the same Ctrl-C, may never be seen to end.
  setTimeout(() => process.exit(1), STOP_LIMIT_MS);
  stop().finally(() => process.exit(1));
}
process.once('SIGINT', end).once('SIGTERM', end);
// Of a library's timers and sockets.
process.once('uncaughtException', (error) => {
  console.error(error);
  end();
});
/** Nothing more is measured while the servers are being stopped. */
async function haltIfEnding(): Promise<void> {
  if (ending) await new Promise(() => {});
}

async function measureStage(stage: Stage): Promise<Result[]> {
  const names = stage.names.filter(wanted);
  const without = (note: string) =>
    names.map((name) => ({ name, server: stage.server, cycles: {}, handOver: {}, notes: [note] }));
  if (names.length === 0) return [];
  if (!stage.available()) return without(`skipped: no ${stage.server}`);
  try {
    const contestants = await stage.start((stopThis) => {
      stopServer = stopThis;
    });
    const results: Result[] = [];
    for (const contestant of contestants) {
      if (wanted(contestant.name)) results.push(await measureContestant(contestant, stage.server));
    }
    return results;
  } catch (error) {
    await haltIfEnding();
    process.exitCode = 1;
    return without(`failed: ${said(error)}`);
  } finally {
    await stop();
  }
}

async function measureContestant(contestant: Contestant, server: string): Promise<Result> {
  const { name, kind, waits } = contestant;
  const result: Result = { name, server, kind, waits, cycles: {}, handOver: {}, notes: [] };
  const cell = async (what: string, measure: () => Promise<void>) => {
    await haltIfEnding();
    process.stderr.write(`${name}, ${what}\n`);
    try {
      await within(forMs * 10 + GRACE_MS, measure());
    } catch (error) {
      await haltIfEnding();
      process.exitCode = 1;
      result.notes.push(`${what} failed: ${said(error)}`);
    }
  };
  for (const atOnce of AT_ONCE) {
    await cell(`${atOnce} at once`, async () => {
      const client = await contestant.connect(1);
      try {
        result.cycles[atOnce] = await measureCycles(client, atOnce, forMs);
      } finally {
        await client.close();
      }
    });
  }
  for (const clients of ['shared', 'each'] as const) {
    const what = clients === 'shared' ? 'hand-over with one client' : 'hand-over with a client each';
    await cell(what, async () => {
      result.handOver[clients] = await measureHandOver(contestant, HAND_OVER_CLIENTS[clients], forMs);
    });
  }
  return result;
}

function said(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function within(limitMs: number, work: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`not over after ${limitMs} ms`)), limitMs);
  await Promise.race([work, late.promise]).finally(() => clearTimeout(timer));
}

const machine = {
  node: process.version,
  cpus: availableParallelism(),
  loadBefore: loadavg()[0] ?? 0,
  filesInMemory: statfsSync(tmpdir()).type === TMPFS,
  seconds: forMs / 1000,
};
const results: Result[] = [];
for (const stage of stages) results.push(...(await measureStage(stage)));
const ratios = ratiosOf(results);
if (values.json) {
  console.log(JSON.stringify({ machine, results, ratios }, null, 2));
} else {
  const where = machine.filesInMemory ? ', files in memory, so that flushes cost nothing' : '';
  console.log(
    `Node ${machine.node}, ${machine.cpus} CPUs, load ${machine.loadBefore.toFixed(1)} before${where}; ${machine.seconds} s per cell\n`,
  );
  for (const text of [cyclesTable(results), handOverTable(results), ratiosTable(ratios)]) console.log(text);
}
process.exit();
