import type { Cycles, HandOver } from './measure.ts';
import type { Ratio } from './ratios.ts';
import { AT_ONCE, type Result } from './result.ts';

const NAME_WIDTH = 20;

/** Acquire and release in a cycle. */
export function cyclesTable(results: readonly Result[]): string {
  const cell = (cycles: Cycles | undefined) =>
    cycles === undefined
      ? pad('-', 36)
      : `${pad(cycles.perSecond.toFixed(0), 16)}${ms(cycles.p50Ms)}${ms(cycles.p99Ms)}`;
  const head = AT_ONCE.map(
    (atOnce) => `${pad(`${atOnce} at once: /s`, 16)}${pad('p50 ms', 10)}${pad('p99 ms', 10)}`,
  );
  return table(
    'acquire and release, each on a lock of its own, from one process',
    head.join(''),
    results,
    ({ cycles }) => AT_ONCE.map((atOnce) => cell(cycles[atOnce])).join(''),
  );
}

/** From a release to the next waiter's grant. */
export function handOverTable(results: readonly Result[]): string {
  const cell = (handOver: HandOver | undefined) =>
    handOver === undefined ? pad('-', 20) : `${ms(handOver.p50Ms)}${ms(handOver.p99Ms)}`;
  const head = ['one client: p50', 'p99 ms', 'a client each: p50', 'p99 ms'];
  const widths = [18, 10, 20, 10];
  const heads = head.map((text, i) => pad(text, widths[i] ?? 0)).join('');
  return table(
    'from a release to the next grant, 16 contenders',
    `${heads}   how one waits`,
    results,
    (result) => {
      const { shared, each } = result.handOver;
      return `${pad('', 8)}${cell(shared)}${pad('', 10)}${cell(each)}   ${result.waits ?? ''}`;
    },
  );
}

export function ratiosTable(ratios: readonly Ratio[]): string {
  const lines = ratios.map(({ what, ratio, goal, reached }) => {
    const verdict = goal === undefined ? '' : `   goal ${goal}: ${reached ? 'reached' : 'missed'}`;
    return `${what.padEnd(68)}${pad(ratio.toFixed(2), 8)}${verdict}`;
  });
  return ['ratios', ...lines, ''].join('\n');
}

function table(
  title: string,
  head: string,
  results: readonly Result[],
  cells: (result: Result) => string,
): string {
  const lines = results.map((result) => {
    const nothing = result.kind === undefined;
    const notes = result.notes.length > 0 ? `   ${result.notes.join('; ')}` : '';
    return `${result.name.padEnd(NAME_WIDTH)}${nothing ? '' : cells(result)}${notes}`;
  });
  return [title, `${''.padEnd(NAME_WIDTH)}${head}`, ...lines, ''].join('\n');
}

function ms(value: number): string {
  return pad(value.toFixed(value < 10 ? 3 : 1), 10);
}

function pad(text: string, width: number): string {
  return text.padStart(width);
}
