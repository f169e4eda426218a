import { hostname, userInfo } from 'node:os';
import { EXIT } from './exit-codes.ts';
import { toJson } from './json.ts';
import type { Parsed } from './options.ts';
import { withPawl } from './store.ts';
import { printable } from './text.ts';

/** `pawl break` */
export async function breakLock({ options, positionals }: Parsed<'break'>): Promise<number> {
  const name = positionals[0] ?? '';
  const { token, reason, slot, by = `${userName()}@${hostname()}`, json } = options;
  return withPawl(options, async (pawl) => {
    await pawl.breakLock(name, { token, reason, by, ...(slot === undefined ? {} : { slot }) });
    const text = `Took "${printable(name)}" away from the holder of token ${token}. It may still be at work: only a fence stops that.\n`;
    process.stdout.write(json ? toJson({ name, token, reason, by }) : text);
    return EXIT.ok;
  });
}

/** A user without an entry in the system's list, as in many containers, has a number alone. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}
