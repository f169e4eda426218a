import type { Block } from '../lesson.ts';
import { noExpiry } from './01-no-expiry.ts';
import { lease } from './02-lease.ts';
import { fencingTokens } from './03-fencing-tokens.ts';
import { whereToCheck } from './04-where-to-check.ts';
import { sizingTheLease } from './05-sizing-the-lease.ts';
import { replication } from './06-replication.ts';
import { sessions } from './07-sessions.ts';
import { convoys } from './08-convoys.ts';
import { retries } from './09-retries.ts';
import { raiseBeforeYouRead } from './10-raise.ts';
import { tokenReuse } from './11-token-reuse.ts';
import { semaphoreTokens } from './12-semaphores.ts';
import { safeStop } from './13-safe-stop.ts';
import { herd } from './14-herd.ts';
import { inFlight } from './15-in-flight.ts';
import { clocks } from './16-clocks.ts';

/** All blocks, in the order they are told. */
export const blocks: readonly Block[] = [
  noExpiry,
  lease,
  fencingTokens,
  whereToCheck,
  sizingTheLease,
  replication,
  sessions,
  convoys,
  retries,
  raiseBeforeYouRead,
  tokenReuse,
  semaphoreTokens,
  safeStop,
  herd,
  inFlight,
  clocks,
];

/** A block and, before it, those it builds on. @param number from 1 to 16. */
export function withPrerequisites(number: number): readonly Block[] {
  const wanted = new Set<number>();
  const want = (each: number) => {
    if (wanted.has(each)) return;
    wanted.add(each);
    for (const need of blocks[each - 1]?.needs ?? []) want(need);
  };
  want(number);
  return blocks.filter((block) => wanted.has(block.number));
}
