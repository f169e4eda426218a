import type { LockState } from '../node/service.ts';
import { EXIT } from './exit-codes.ts';
import { toJson } from './json.ts';
import type { Parsed } from './options.ts';
import { withPawl } from './store.ts';
import { holderText, ownerText, printable } from './text.ts';

/** `pawl inspect` */
export async function inspect({ options, positionals }: Parsed<'inspect'>): Promise<number> {
  return withPawl(options, async (pawl) => {
    const state = await pawl.inspect(positionals[0] ?? '');
    process.stdout.write(options.json ? toJson(state) : describe(state));
    return EXIT.ok;
  });
}

function describe({ name, permits, holders, waiting, waiters, lastBreak }: LockState): string {
  const lines = [`${printable(name)}${permits === null ? '' : ` (semaphore of ${permits})`}`];
  if (holders.length === 0) lines.push('  free');
  for (const holder of holders) lines.push(`  held by ${holderText(holder)}`);
  for (const { mode, owner } of waiters)
    lines.push(`  waiting: ${ownerText(owner)}${mode === 'shared' ? ' (shared)' : ''}`);
  if (waiting > waiters.length) lines.push(`  and ${waiting - waiters.length} more waiting`);
  if (lastBreak !== null) {
    const { token, by, reason, atMs } = lastBreak;
    const at = new Date(atMs).toISOString();
    lines.push(`  last broken: token ${token} by ${printable(by)} at ${at}, since ${printable(reason)}`);
  }
  return `${lines.join('\n')}\n`;
}
