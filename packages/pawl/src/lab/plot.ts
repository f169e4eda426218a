import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assemblyFigures, slipShare } from './assembly.ts';
import { drawHolders, priceLease } from './blocks/05-sizing-the-lease.ts';
import { convoyFigures } from './blocks/08-convoys.ts';

interface Curve {
  readonly label: string;
  /** In the order of x; y from 0 to 1 of the axis. */
  readonly points: readonly (readonly [x: number, y: number])[];
}

interface Chart {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly logX: boolean;
  readonly curves: readonly Curve[];
}

/** Writes the curves as SVG files. @param directory made if it is not there. @returns their paths. */
export function plot(directory: string): readonly string[] {
  mkdirSync(directory, { recursive: true });
  const charts: [string, Chart][] = [
    ['lease-size.svg', leaseChart()],
    ['check-gap.svg', gapChart()],
    ['convoy.svg', convoyChart()],
  ];
  return charts.map(([name, chart]) => {
    const path = join(directory, name);
    writeFileSync(path, toSvg(chart));
    return path;
  });
}

function leaseChart(): Chart {
  const holders = drawHolders();
  const prices = [0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 60, 80].map((ttlS) => priceLease(holders, ttlS));
  return {
    title: 'Sizing the lease: no TTL makes both small',
    xLabel: 'TTL, s',
    yLabel: 'zombies, % of operations; wedge, 10 ms per operation',
    logX: true,
    curves: [
      { label: 'zombies', points: prices.map(({ ttlS, zombies }) => [ttlS, zombies * 100]) },
      { label: 'wedge', points: prices.map(({ ttlS, wedgeS }) => [ttlS, wedgeS * 100]) },
    ],
  };
}

function gapChart(): Chart {
  const gaps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
  const fenced = assemblyFigures().rows[3]?.lost ?? 0;
  return {
    title: 'A check in the client: its worth is a latency',
    xLabel: 'time between check and write, ms',
    yLabel: 'lost updates, % of those without a check',
    logX: true,
    curves: [
      { label: 'client check', points: gaps.map((gapS) => [gapS * 1000, slipShare(gapS) * 100]) },
      { label: 'fence', points: gaps.map((gapS) => [gapS * 1000, fenced]) },
    ],
  };
}

function convoyChart(): Chart {
  const { curve } = convoyFigures();
  return {
    title: 'Lock convoys: order is paid for at every switch',
    xLabel: 'cost of a switch, ms (a section takes 1 ms)',
    yLabel: 'sections per second',
    logX: false,
    curves: [
      { label: 'hand-over', points: curve.map(({ switchMs, handOver }) => [switchMs, handOver]) },
      { label: 'barging', points: curve.map(({ switchMs, barging }) => [switchMs, barging]) },
    ],
  };
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [640, 400, 60, 110, 50, 50];

function toSvg({ title, xLabel, yLabel, logX, curves }: Chart): string {
  const xs = curves.flatMap(({ points }) => points.map(([x]) => x));
  const top = Math.max(...curves.flatMap(({ points }) => points.map(([, y]) => y))) * 1.05;
  const scale = (x: number) => (logX ? Math.log10(x) : x);
  const [from, to] = [scale(Math.min(...xs)), scale(Math.max(...xs))];
  const px = (x: number) => (LEFT + ((scale(x) - from) / (to - from)) * (WIDTH - LEFT - RIGHT)).toFixed(1);
  const py = (y: number) => (HEIGHT - BOTTOM - (y / top) * (HEIGHT - TOP - BOTTOM)).toFixed(1);
  const lines = curves.map(({ label, points }, i) => {
    const [lastX = 0, lastY = 0] = points.at(-1) ?? [];
    const path = points.map(([x, y]) => `${px(x)},${py(y)}`).join(' ');
    return (
      `<polyline class="c${i}" points="${path}"/>` +
      `<text class="l${i}" x="${Number(px(lastX)) + 8}" y="${Number(py(lastY)) + 4}">${label}</text>`
    );
  });
  const ticks = [...new Set(xs)].map(
    (x) =>
      `<text x="${px(x)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle" class="t">${Number(x.toFixed(3))}</text>`,
  );
  const levels = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const y = part * top;
    return (
      `<line class="g" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${py(y)}" y2="${py(y)}"/>` +
      `<text x="${LEFT - 8}" y="${Number(py(y)) + 4}" text-anchor="end" class="t">${Number(y.toPrecision(2))}</text>`
    );
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="${title}">
<style>
  text { fill: #1f2328 } .t { font-size: 10px; fill: #59636e } .g { stroke: #d1d9e0 }
  polyline { fill: none; stroke-width: 2.5 } .c0 { stroke: #0969da } .l0 { fill: #0969da } .c1 { stroke: #bc4c00 } .l1 { fill: #bc4c00 }
  rect { fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .t { fill: #9198a1 } .g { stroke: #3d444d } rect { fill: #0d1117 }
    .c0 { stroke: #4493f8 } .l0 { fill: #4493f8 } .c1 { stroke: #f0883e } .l1 { fill: #f0883e }
  }
</style>
<rect width="${WIDTH}" height="${HEIGHT}"/>
<text x="${LEFT}" y="22" font-weight="600">${title}</text>
<text x="${LEFT}" y="40" class="t">${yLabel}</text>
<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 10}" text-anchor="middle" class="t">${xLabel}</text>
${[...levels, ...ticks, ...lines].join('\n')}
</svg>
`;
}
