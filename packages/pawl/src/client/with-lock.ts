import { LeaseLostError } from '../errors.ts';
import type { Lease } from './lease.ts';
import type { AcquireSettings } from './options.ts';
import type { Scopes } from './scope.ts';

export interface LockSettings extends AcquireSettings {
  /** Within the work of another `withLock` on the same lock, run under that very lease instead of throwing. */
  readonly reentrant?: boolean | undefined;
}

type Result<T> = { readonly value: Awaited<T> } | { readonly error: unknown };

/**
 * Runs `work` under `lease` and releases it. What `work` came to decides, except that a lost lease always rejects: then it
 * is the cause. A release that fails is only reported where it changes what the caller may believe.
 */
export async function runUnder<T>(
  scopes: Scopes,
  lease: Lease,
  work: (lease: Lease) => T,
): Promise<Awaited<T>> {
  const result = await scopes.run(lease, () => attempt(lease, work));
  if (lease.state === 'lost') throw lossOf(lease, result);
  if (lease.held) {
    try {
      await lease.release();
    } catch (error) {
      // The work was done while the lease lasted. If the engine cannot be reached the release goes on by itself; if it
      // says that the lock was not held, somebody else may have been at work.
      if (error instanceof LeaseLostError && 'value' in result) throw lossOf(lease, result);
    }
  }
  if ('error' in result) throw result.error;
  return result.value;
}

async function attempt<T>(lease: Lease, work: (lease: Lease) => T): Promise<Result<T>> {
  try {
    return { value: await work(lease) };
  } catch (error) {
    return { error };
  }
}

function lossOf<T>(lease: Lease, result: Result<T>): unknown {
  if ('error' in result && result.error instanceof LeaseLostError && result.error.token === lease.token) {
    return result.error;
  }
  const cause = 'error' in result ? result.error : result.value;
  return new LeaseLostError(lease.name, lease.token, 'it ended before the work under it did', { cause });
}
