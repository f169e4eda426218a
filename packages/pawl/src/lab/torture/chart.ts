import type { RunResult } from './run.ts';

/** A column of bars, one for each run. */
interface Panel {
  readonly title: string;
  readonly left: number;
  readonly value: (result: RunResult) => number;
  readonly label: (result: RunResult) => string;
}

const [WIDTH, ROW, TOP, BOTTOM] = [900, 24, 76, 16];
/** Where the bars begin, and how long the longest is. */
const [LOST_LEFT, WEDGE_LEFT, BAR] = [210, 590, 190];

const panels: readonly Panel[] = [
  {
    title: 'lost updates, of those committed',
    left: LOST_LEFT,
    value: ({ lost, updates }) => (updates === 0 ? 0 : lost / updates),
    label: ({ lost, updates }) => `${lost} of ${updates}`,
  },
  {
    title: 'longest wedge after a stop or a kill, s',
    left: WEDGE_LEFT,
    value: ({ wedgesMs }) => Math.max(0, ...wedgesMs),
    label: ({ wedgesMs }) => (Math.max(0, ...wedgesMs) / 1000).toFixed(2),
  },
];

/** Draws what was lost, and how long the lock was wedged, as bars of an SVG. */
export function drawChart(results: readonly RunResult[]): string {
  const height = TOP + results.length * ROW + BOTTOM;
  const title = 'The same torture for all: with the fence, without it, and peers';
  const names = results.map(
    (result, i) => `<text x="${LOST_LEFT - 10}" y="${middle(i)}" text-anchor="end">${nameOf(result)}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12" role="img" aria-label="${title}">
<style>
  text { fill: #1f2328 } .t { font-size: 11px; fill: #59636e }
  .page { fill: #ffffff } .fenced { fill: #0969da } .unfenced { fill: #bc4c00 } .peer { fill: #8250df }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .t { fill: #9198a1 }
    .page { fill: #0d1117 } .fenced { fill: #4493f8 } .unfenced { fill: #f0883e } .peer { fill: #ab7df8 }
  }
</style>
<rect class="page" width="${WIDTH}" height="${height}"/>
<text x="16" y="26" font-size="15" font-weight="600">${title}</text>
${[...names, ...panels.flatMap((panel) => drawPanel(panel, results))].join('\n')}
</svg>
`;
}

function drawPanel({ title, left, value, label }: Panel, results: readonly RunResult[]): string[] {
  const most = Math.max(...results.map(value)) || 1;
  const bars = results.map((result, i) => {
    const length = (value(result) / most) * BAR;
    const seen = value(result) > 0 ? Math.max(1, length) : 0;
    return (
      `<rect class="${kindOf(result)}" x="${left}" y="${TOP + i * ROW + 5}" width="${seen.toFixed(1)}" height="${ROW - 10}"/>` +
      `<text class="t" x="${(left + length + 7).toFixed(1)}" y="${middle(i)}">${label(result)}</text>`
    );
  });
  return [`<text class="t" x="${left}" y="${TOP - 12}">${title}</text>`, ...bars];
}

function middle(row: number): number {
  return TOP + row * ROW + ROW / 2 + 4;
}

function kindOf({ kind, fenced }: RunResult): string {
  if (kind === 'peer') return 'peer';
  return fenced ? 'fenced' : 'unfenced';
}

function nameOf(result: RunResult): string {
  return result.kind === 'peer' ? result.target : `Pawl on ${result.target}, ${kindOf(result)}`;
}
