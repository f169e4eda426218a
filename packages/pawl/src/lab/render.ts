import type { Assembly } from './assembly.ts';
import type { Block, Cell, Measured, Table } from './lesson.ts';
import type { Claim } from './verify/index.ts';

const WIDTH = 100;

/** A block as text: what was set up, what came out, what it says. */
export function renderBlock({ number, title, lesson }: Block, measured: Measured): string {
  return section(`Block ${number}: ${title}`, lesson, measured);
}

export function renderAssembly(measured: Assembly): string {
  return section('The assembly', 'all of it together: one scenario, four designs', measured);
}

export function renderClaims(claims: readonly Claim[]): string {
  const rows = claims.map(({ about, claim, holds, measured }): Cell[] => [
    holds ? 'holds' : 'FAILS',
    about,
    claim,
    measured,
  ]);
  const holding = claims.filter((claim) => claim.holds).length;
  return `${renderTable({ columns: ['', 'of', 'claim', 'derived'], rows })}\n\n${holding} of ${claims.length} claims hold.\n`;
}

export function renderList(blocks: readonly Block[]): string {
  return `${blocks.map(({ number, title, lesson }) => `${String(number).padStart(2)}  ${title}: ${lesson}`).join('\n')}\n`;
}

export function renderTable({ columns, rows }: Table): string {
  const all = [columns, ...rows];
  const widths = columns.map((_, i) => Math.max(...all.map((row) => String(row[i] ?? '').length)));
  const line = (row: readonly Cell[]) =>
    row
      .map((cell, i) =>
        typeof cell === 'number' ? String(cell).padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0),
      )
      .join('   ')
      .trimEnd();
  return all.map((row) => `    ${line(row)}`).join('\n');
}

function section(title: string, lesson: string, { setting, table, finding, tryIt }: Measured): string {
  return [
    title,
    '='.repeat(title.length),
    wrap(`${lesson.charAt(0).toUpperCase()}${lesson.slice(1)}.`),
    '',
    wrap(setting),
    '',
    renderTable(table),
    '',
    wrap(finding),
    '',
    wrap(`Try it. ${tryIt.invitation}`),
    '',
    renderTable(tryIt.table),
    '',
    wrap(tryIt.finding),
    '',
    '',
  ].join('\n');
}

/** Breaks lines between words. */
function wrap(text: string): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + word.length >= WIDTH) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join('\n');
}
