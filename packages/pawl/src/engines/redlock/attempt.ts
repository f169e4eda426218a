import { randomBytes } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import { EngineUnavailableError, StoreCorruptError } from '../../errors.ts';
import { MAX_TOKEN, parseToken, type Token } from '../../token.ts';
import type { Instances } from './instances.ts';
import { RedlockLease, releaseEverywhere } from './lease.ts';
import { CONFIRM, TAKE } from './scripts.ts';
import { Validity } from './validity.ts';

/** What became of one attempt. All but a grant have been given back on every instance that could be reached. */
export type AttemptResult =
  | { readonly kind: 'granted'; readonly lease: RedlockLease }
  /** A quorum answered, but another stood in the way. */
  | { readonly kind: 'held' }
  /** A quorum was won, but its token could not be confirmed while it lasted. */
  | { readonly kind: 'late'; readonly error: EngineUnavailableError }
  /** No quorum answered. */
  | { readonly kind: 'unavailable'; readonly error: EngineUnavailableError };

/**
 * One attempt, in two phases: takes a quorum and learns its counters, then writes a higher token down on a quorum.
 *
 * Why tokens rise: two grants share an instance on which both were confirmed. Each had it from being taken until being confirmed,
 * so one had it wholly before the other, whose token was then above the first's, or was refused there.
 */
export async function attempt(
  instances: Instances,
  clock: Clock,
  lock: { readonly name: string; readonly keys: readonly string[]; readonly ttlMs: number },
): Promise<AttemptResult> {
  const { keys, ttlMs } = lock;
  const value = randomBytes(20).toString('hex');
  const validity = new Validity(clock, ttlMs);
  const fail = async (result: AttemptResult): Promise<AttemptResult> => {
    await releaseEverywhere(instances, keys, value);
    return result;
  };

  const taken = await instances.ask({ script: TAKE, keys, args: [value, ttlMs], read: readCounter });
  if (!instances.agreed(taken.yes.length)) {
    if (taken.yes.length + taken.no >= instances.quorum) return fail({ kind: 'held' });
    return fail({ kind: 'unavailable', error: instances.unavailable(taken, 'definite') });
  }

  let token: Token = 1n;
  for (const counter of taken.yes) if (counter >= token) token = counter + 1n;
  const confirmed = await instances.ask({
    script: CONFIRM,
    keys,
    args: [value, token.toString()],
    read: (answer) => (answer === 1 ? true : undefined),
  });
  const { yes, no } = confirmed;
  if (validity.remainingMs > 0 && instances.agreed(yes.length)) {
    return {
      kind: 'granted',
      lease: new RedlockLease(instances, clock, { ...lock, value, token, validity }),
    };
  }
  if (validity.remainingMs > 0 && yes.length + no < instances.quorum) {
    return fail({ kind: 'unavailable', error: instances.unavailable(confirmed, 'definite') });
  }
  return fail({ kind: 'late', error: tooLate(lock.name, ttlMs) });
}

/** The answer of {@link TAKE}. */
function readCounter(answer: unknown): Token | undefined {
  if (answer === null) return undefined;
  const counter = answer === '0' ? 0n : parseToken(answer);
  if (counter !== undefined && counter < MAX_TOKEN) return counter;
  throw new StoreCorruptError('A Redis', `its counter of tokens is ${String(answer)}`);
}

function tooLate(name: string, ttlMs: number): EngineUnavailableError {
  return new EngineUnavailableError(
    `A quorum took lock "${name}", but its TTL of ${ttlMs} ms was over, or the Redis had forgotten it, before its token was confirmed. ` +
      'Ask for a longer TTL, or check what slows the Redis down.',
    'definite',
  );
}
