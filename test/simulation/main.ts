/**
 * The simulation by hand: `npm run sim -- [--seed N] [--steps M] [--seconds S] [--from N]`. With a seed it plays that run alone, else run after run
 * from a seed that is taken from the time unless it is given, for as long as was asked. It prints how much it did and how often it injected which fault, and ends with
 * 1 where a promise was broken.
 */
import { parseArgs } from 'node:util';
import { FAULT_KINDS } from './fault-kinds.ts';
import { minimise } from './minimise.ts';
import { type RunResult, simulate } from './simulation.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    steps: { type: 'string', default: '300' },
    seconds: { type: 'string', default: '60' },
    from: { type: 'string' },
  },
});
const steps = number('steps', values.steps);
const seconds = number('seconds', values.seconds);
const totals = new Map<string, number>();
const faults = new Map<string, number>();
let runs = 0;
let operations = 0;
let allSteps = 0;
let simulatedMs = 0;

const from = values.from === undefined ? Date.now() % 2 ** 31 : number('from', values.from);
if (values.seed === undefined) await playOn(from);
else {
  const seed = number('seed', values.seed);
  add(await play(seed));
}
report();
process.exit(0);

async function playOn(firstSeed: number): Promise<void> {
  const until = performance.now() + seconds * 1000;
  for (let seed = firstSeed; performance.now() < until; seed += 1) add(await play(seed));
}

async function play(seed: number): Promise<RunResult> {
  const result = await simulate({ seed, steps });
  if (result.violation !== undefined) await fail(seed, result);
  return result;
}

async function fail(seed: number, first: RunResult): Promise<never> {
  console.log(`Seed ${seed} breaks a promise in step ${first.step}:\n${first.violation}\n`);
  const { faults, result } = await minimise(seed, steps);
  console.log(
    `With these faults alone: ${faults.join(', ') || 'none'}\n${result.violation}\n${result.timeline}\n`,
  );
  console.log(`Play it again: npm run sim -- --seed ${seed} --steps ${steps}`);
  process.exit(1);
}

function add({ counts, injected, operations: judged, simulatedMs: ms }: RunResult): void {
  runs += 1;
  allSteps += steps;
  simulatedMs += ms;
  operations += judged;
  for (const [kind, count] of counts) totals.set(kind, (totals.get(kind) ?? 0) + count);
  for (const [kind, count] of injected) faults.set(kind, (faults.get(kind) ?? 0) + count);
}

function report(): void {
  const hours = (simulatedMs / 3_600_000).toFixed(1);
  console.log(`${runs} runs, ${allSteps} steps, ${hours} simulated hours; no promise was broken.`);
  console.log(`${operations} operations were judged.`);
  const injected = [...faults.values()].reduce((sum, count) => sum + count, 0);
  console.log(`${injected} faults were injected:`);
  // All of them: a kind that never happens tests nothing.
  for (const kind of FAULT_KINDS) row(kind, faults.get(kind) ?? 0);
  console.log('What happened:');
  for (const [kind, count] of [...totals].sort(([, a], [, b]) => b - a)) row(kind, count);
}

function row(kind: string, count: number): void {
  console.log(`  ${kind.padEnd(14)} ${count}`);
}

function number(name: string, text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text);
  console.error(`--${name} must be a whole number, but was "${text}".`);
  process.exit(64);
}
