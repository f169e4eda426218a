import type { GuardReport, UnfencedWrites } from '../../fences/guard.ts';
import { printable } from '../text.ts';

/** What the guards are and have seen, to be read by a person. */
export function reportText({ guards, unfenced }: GuardReport): string {
  if (guards.length === 0 && unfenced.length === 0) return 'No table has a guard.\n';
  const state = guards.map(
    ({ table, mode, resource }) =>
      `${printable(table)}  ${mode}  needs the token of ${resource === undefined ? 'any resource' : printable(resource)}`,
  );
  const seen =
    unfenced.length === 0
      ? ['No write without a current token was recorded.']
      : ['Written without a current token:', ...unfenced.map(entry)];
  return `${[...state, '', ...seen].join('\n')}\n`;
}

function entry(each: UnfencedWrites): string {
  const { table, operation, reason, application, role, query, row, count, firstAt, lastAt } = each;
  const who = [
    ...(application === undefined ? [] : [`by ${application}`]),
    ...(role === undefined ? [] : [`as ${role}`]),
  ].join(' ');
  const lines = [
    `${table}  ${operation}  ${count} ${count === 1 ? 'time' : 'times'}  ${reason}`,
    `first ${firstAt.toISOString()}, last ${lastAt.toISOString()}${row === undefined ? '' : `, row ${row}`}`,
    ...(who === '' ? [] : [who]),
    ...(query === undefined ? [] : [query]),
  ];
  return lines.map((line, i) => `${i === 0 ? '  ' : '    '}${printable(line)}`).join('\n');
}
