import type { LockState } from '../node/service.ts';
import { EXIT } from './exit-codes.ts';
import { toJson } from './json.ts';
import type { Parsed } from './options.ts';
import { withPawl } from './store.ts';
import { holderText, printable } from './text.ts';

/** `pawl ls` */
export async function ls({ options, positionals }: Parsed<'ls'>): Promise<number> {
  return withPawl(options, async (pawl) => {
    const states: LockState[] = [];
    for await (const state of pawl.list(positionals[0] ?? '')) states.push(state);
    process.stdout.write(options.json ? toJson(states) : table(states));
    return EXIT.ok;
  });
}

function table(states: readonly LockState[]): string {
  if (states.length === 0) return 'No lock is in use.\n';
  const rows = states.map(({ name, holders, waiting }) => [
    printable(name),
    holders.map(holderText).join(', ') || 'free',
    String(waiting),
  ]);
  const all = [['LOCK', 'HELD BY', 'WAITING'], ...rows];
  const widths = [0, 1].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) => `${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}`.trimEnd())
    .join('\n')
    .concat('\n');
}
