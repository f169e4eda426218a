import type { Unmeasured } from './choice.ts';
import type { RunResult } from './run.ts';
import type { TortureReport } from './torture.ts';

const COLUMNS: readonly [head: string, cell: (result: RunResult) => string][] = [
  ['target', ({ target, kind }) => (kind === 'pawl' ? `Pawl on ${target}` : target)],
  ['fence', ({ kind, fenced }) => (fenced ? 'yes' : kind === 'pawl' ? 'no' : 'none to be had')],
  ['updates', ({ updates }) => `${updates}`],
  ['lost', ({ lost }) => `${lost}`],
  ['late writes', ({ lateWrites }) => `${lateWrites}`],
  ['refused', ({ fenced, refused }) => (fenced ? `${refused}` : '-')],
  ['wedged s', ({ wedgesMs }) => seconds(wedgesMs.reduce((sum, ms) => sum + ms, 0))],
  ['longest s', ({ wedgesMs }) => seconds(Math.max(0, ...wedgesMs))],
  ['stops', ({ injuries }) => `${injuries.stops}`],
  ['kills', ({ injuries }) => `${injuries.kills}`],
  ['throttles', ({ injuries }) => `${injuries.throttles}`],
  ['cuts', ({ injuries }) => `${injuries.cuts}`],
  ['restarts', ({ injuries }) => `${injuries.restarts}`],
];
const TEXT_COLUMNS = 2;

function resultsTable(results: readonly RunResult[], unmeasured: readonly Unmeasured[]): string {
  const rows = [
    COLUMNS.map(([head]) => head),
    ...results.map((each) => COLUMNS.map(([, cell]) => cell(each))),
  ];
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, i) => (i < TEXT_COLUMNS ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
  const crashed = results
    .filter(({ crashes }) => crashes.length > 0)
    .map(({ target, crashes }) => `${target}: ${crashes.length} crashed by themselves: ${reason(crashes)}`);
  return [
    ...lines,
    ...crashed,
    ...unmeasured.map(({ target, kind, why }) => `${target}: ${kind}: ${why}`),
  ].join('\n');
}

const LEGEND = `updates: increments committed. lost: those that are not in the counter in the end. late writes: writes over what the writer had not read; one may undo
many updates. refused: writes that the fence refused. wedged: time in which nobody was granted the lock after its holder was stopped or killed.
A peer's lock has no token, so there is nothing that a fence could check.`;

/** The report as a table, with what the machine was and what the columns mean. */
export function renderReport({ machine, fencedOnesHeld, results, unmeasured }: TortureReport): string {
  const { node, cpus, loadBefore, seconds: forSeconds, ttlMs, heldUpMs } = machine;
  const host = `Node ${node}, ${cpus} CPUs, load ${loadBefore.toFixed(1)} before`;
  const run = `${forSeconds} s a target, TTL ${ttlMs / 1000} s; the nemesis itself was held up for ${heldUpMs} ms at most`;
  const paragraphs = [`${host}; ${run}`, resultsTable(results, unmeasured), LEGEND];
  if (!fencedOnesHeld) paragraphs.push('A fenced run lost updates, or did none.');
  return `${paragraphs.join('\n\n')}\n`;
}

/** What the first one printed for its error. */
function reason([first = '']: readonly string[]): string {
  return first.split('\n').find((line) => /^\w*Error\b/.test(line)) ?? first.trim();
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(2);
}
