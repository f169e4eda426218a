/** What holders of a lock do: how long they work, what stalls they meet, how often they crash. */
export interface Workload {
  /** Mean of the work under the lock, in ms; exponentially distributed. */
  readonly workMs: number;
  /** Stalls that operations met, in ms; each operation draws one. Not empty. */
  readonly stallsMs: readonly number[];
  /** The share of holders that die while they hold the lock, 0 to 1. */
  readonly crashRate: number;
  /** How long a renewal takes, in ms. */
  readonly roundTripMs: number;
}

/** What a TTL costs. Shares are of operations, 0 to 1; times are means for one operation, in ms. */
export interface Price {
  readonly ttlMs: number;
  /** Operations that outlive their lease, if nobody renews it. */
  readonly zombiesUnrenewed: number;
  /** The same with renewal at a third of the TTL: only a stall longer than what is left of the lease counts. */
  readonly zombiesRenewed: number;
  /** For how long others wait for dead holders. */
  readonly wedgeMs: number;
  /** How long a dead holder's lock stays shut at most. */
  readonly failoverMs: number;
  /** What its renewals take while it works. */
  readonly renewalMs: number;
  /** Wedges, renewals, and the work of zombies, which is done again since a fence refused it. */
  readonly fencedCostMs: number;
}

export interface Advice {
  readonly prices: readonly Price[];
  /** The TTL that costs least behind a fence. */
  readonly best: Price;
}

/** Renewal is sent at this part of the TTL; see C2. */
const RENEWAL = 1 / 3;

/**
 * Prices TTLs on a workload, by the model of the lab's fifth block: a long lease makes dead holders dear, a short one makes
 * zombies and costs renewals, and no TTL makes all of them small.
 *
 * @param sweepMs how long after a session's end the engine notices it.
 * @param random uniform numbers from 0 up to 1.
 * @param operations how many to draw; each TTL sees the same ones.
 */
export function priceTtls(
  workload: Workload,
  ttlsMs: readonly number[],
  sweepMs: number,
  random: () => number,
  operations = 20_000,
): Advice {
  const drawn = Array.from({ length: operations }, () => ({
    workMs: -Math.log(1 - random()) * workload.workMs,
    stallMs: workload.stallsMs[Math.floor(random() * workload.stallsMs.length)] ?? 0,
    /** When the stall strikes, as a part of the time between two renewals. */
    phase: random(),
  }));
  const prices = ttlsMs.map((ttlMs): Price => {
    let unrenewed = 0;
    let renewed = 0;
    let redoneMs = 0;
    for (const { workMs, stallMs, phase } of drawn) {
      if (workMs + stallMs > ttlMs) unrenewed += 1;
      const sinceRenewalMs = Math.min(workMs, ttlMs * RENEWAL) * phase;
      if (stallMs > ttlMs - sinceRenewalMs) {
        renewed += 1;
        redoneMs += workMs + stallMs;
      }
    }
    const failoverMs = ttlMs + sweepMs;
    const wedgeMs = workload.crashRate * failoverMs;
    const renewalMs = (workload.workMs / (ttlMs * RENEWAL)) * workload.roundTripMs;
    return {
      ttlMs,
      zombiesUnrenewed: unrenewed / operations,
      zombiesRenewed: renewed / operations,
      wedgeMs,
      failoverMs,
      renewalMs,
      fencedCostMs: redoneMs / operations + wedgeMs + renewalMs,
    };
  });
  const [first, ...others] = prices;
  if (first === undefined) throw new RangeError('There is no TTL to price; give at least one.');
  const best = others.reduce(
    (least, price) => (price.fencedCostMs < least.fencedCostMs ? price : least),
    first,
  );
  return { prices, best };
}
