import type { RunResult } from './run.ts';

/** A target that was not measured, and why. */
export interface Unmeasured {
  readonly target: string;
  readonly why: string;
}

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
  ['cuts', ({ injuries }) => `${injuries.cuts}`],
  ['restarts', ({ injuries }) => `${injuries.restarts}`],
];
const TEXT_COLUMNS = 2;

export function resultsTable(results: readonly RunResult[], unmeasured: readonly Unmeasured[]): string {
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
  return [...lines, ...crashed, ...unmeasured.map(({ target, why }) => `${target}: ${why}`)].join('\n');
}

export const LEGEND = `updates: increments committed. lost: those that are not in the counter in the end. late writes: writes over what the writer had not read; one may undo
many updates. refused: writes that the fence refused. wedged: time in which nobody was granted the lock after its holder was stopped or killed.
A peer's lock has no token, so there is nothing that a fence could check.`;

/** What the first one printed for its error. */
function reason([first = '']: readonly string[]): string {
  return first.split('\n').find((line) => /^\w*Error\b/.test(line)) ?? first.trim();
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(2);
}
