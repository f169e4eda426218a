import type { Owner } from '../core/records.ts';
import { AcquireAbortedError, LeaseAtRiskError, LeaseLostError, PawlError } from '../errors.ts';
import type { LockState } from '../node/service.ts';
import type { Token } from '../token.ts';
import type { Lease } from './lease.ts';
import type { AcquireSettings } from './options.ts';

/** How to run for leader: as `acquire`, but the wait has no limit other than the signal. */
export type ElectSettings = Omit<AcquireSettings, 'waitMs' | 'mode' | 'requestId'>;

export interface Campaign<T> {
  acquire(settings: AcquireSettings): Promise<Lease>;
  /** Runs the leader's work under the lease and releases it. */
  lead(lease: Lease): Promise<Awaited<T>>;
  /** Lets a little time pass before the next attempt. */
  pauseAfter(error: PawlError): Promise<void>;
}

/** Who leads, as others see it. */
export interface Leader {
  /** Rises with every reign: give it to whatever the leader writes to. */
  readonly token: Token;
  readonly owner: Owner;
}

/** Campaigns until elected and leads; starts anew whenever the lease was lost. */
export async function elect<T>(campaign: Campaign<T>, settings: ElectSettings): Promise<Awaited<T>> {
  for (;;) {
    const lease = await standForElection(campaign, settings);
    try {
      return await campaign.lead(lease);
    } catch (error) {
      const ownWork = !(error instanceof LeaseLostError || error instanceof LeaseAtRiskError);
      if (ownWork || error.token !== lease.token) throw error;
      if (settings.signal?.aborted === true)
        throw new AcquireAbortedError(lease.name, settings.signal.reason);
    }
  }
}

/** A candidate outlives whatever passes: an engine that is away, a session that expired in the queue. */
async function standForElection<T>(campaign: Campaign<T>, settings: ElectSettings): Promise<Lease> {
  for (;;) {
    try {
      return await campaign.acquire(settings);
    } catch (error) {
      if (!(error instanceof PawlError && error.retryable)) throw error;
      await campaign.pauseAfter(error);
    }
  }
}

/** The leaders of an election, out of the states of its lock. */
export async function* observe(states: AsyncIterable<LockState>): AsyncGenerator<Leader | null, void, void> {
  let last: Token | null | undefined;
  for await (const { holders } of states) {
    const holder = holders.find((each) => !each.lockDelay);
    const token = holder?.token ?? null;
    if (token === last) continue;
    last = token;
    yield holder === undefined ? null : { token: holder.token, owner: holder.owner };
  }
}
