import { hostname, userInfo } from 'node:os';
import { EXIT } from './exit-codes.ts';
import { toJson } from './json.ts';
import type { Parsed } from './options.ts';
import { withStore } from './store.ts';

/** `pawl break` */
export async function breakLock({ options, positionals }: Parsed<'break'>): Promise<number> {
  const name = positionals[0] ?? '';
  const { token, reason, slot, by = `${userInfo().username}@${hostname()}`, json } = options;
  return withStore(options.db, async (pawl) => {
    await pawl.breakLock(name, { token, reason, by, ...(slot === undefined ? {} : { slot }) });
    const text = `Took "${name}" away from the holder of token ${token}. It may still be at work: only a fence stops that.\n`;
    process.stdout.write(json ? toJson({ name, token, reason, by }) : text);
    return EXIT.ok;
  });
}
