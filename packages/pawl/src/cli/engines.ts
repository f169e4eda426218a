import { memoryGuarantees } from '../engines/memory/index.ts';
import { postgresGuarantees } from '../engines/postgres/index.ts';
import { redisGuarantees } from '../engines/redis/index.ts';
import { sqliteGuarantees } from '../engines/sqlite/index.ts';
import { EXIT } from './exit-codes.ts';
import { toJson } from './json.ts';
import type { Parsed } from './options.ts';

/** `pawl engines` */
export async function engines({ options }: Parsed<'engines'>): Promise<number> {
  const all = [memoryGuarantees, sqliteGuarantees, postgresGuarantees, redisGuarantees];
  const text = all.map((each) =>
    [
      each.engine,
      `  survives           ${each.survives}`,
      `  expiry             decided by ${each.expiryDecidedBy}`,
      `  tokens             rest on ${each.tokensRestOn}`,
      `  wake-up            ${each.wakeUp}`,
      `  grants durable     ${each.durable ? 'yes' : 'no'}`,
      `  mutual exclusion   ${each.mutualExclusion}`,
      `  needs fencing      yes`,
      `  shortest TTL       ${each.minTtlMs} ms, and an end is noticed within ${each.sweepMs} ms`,
    ].join('\n'),
  );
  process.stdout.write(options.json ? toJson(all) : `${text.join('\n\n')}\n`);
  return EXIT.ok;
}
