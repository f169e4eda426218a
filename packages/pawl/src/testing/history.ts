import type { Token } from '../token.ts';

/** One exclusive grant, as the client that had it saw it. Times in ms of one clock that all clients share. */
export interface GrantSeen {
  readonly lock: string;
  readonly token: Token;
  /** Who had it, for messages. */
  readonly client: string;
  /** Just before the acquire was asked for. */
  readonly askedAtMs: number;
  /** Just after the grant was heard of. */
  readonly grantedAtMs: number;
  /** The last time the client looked and found that it held the lock; before it asked for the release. */
  readonly heldUntilMs: number;
}

/** One write that a resource behind a fence accepted, in the order in which it accepted them. */
export interface EffectSeen {
  readonly resource: string;
  readonly token: Token;
}

/** Everything that clients and resources saw. */
export interface History {
  readonly grants: readonly GrantSeen[];
  readonly effects: readonly EffectSeen[];
}

/**
 * Reads a whole history and says what in it breaks a promise: S1 (tokens strictly increase in the order of grants, and none comes twice),
 * S2 (no two clients hold one lock at one time), S7 (no effect of a lower token after one of a higher).
 *
 * What it needs is only what clients can see, so it judges any lock whose grants have tokens. A client that was paused counts as a holder
 * until it last looked, not until it would have looked.
 *
 * @returns what is wrong, in words; nothing if all promises were kept.
 */
export function checkHistory({ grants, effects }: History): string[] {
  const wrong: string[] = [];
  for (const [lock, all] of Map.groupBy(grants, (grant) => grant.lock)) {
    wrong.push(...checkTokens(lock, all), ...checkExclusion(lock, all));
  }
  for (const [resource, all] of Map.groupBy(effects, (effect) => effect.resource)) {
    for (const [i, { token }] of all.entries()) {
      const before = all[i - 1];
      if (before !== undefined && before.token > token) {
        wrong.push(`S7: "${resource}" accepted token ${token} after token ${before.token}`);
      }
    }
  }
  return wrong;
}

/** A grant that was heard of before another was asked for came before it, so its token is lower. */
function checkTokens(lock: string, grants: readonly GrantSeen[]): string[] {
  const wrong: string[] = [];
  const byGranted = grants.toSorted((a, b) => a.grantedAtMs - b.grantedAtMs);
  const byAsked = grants.toSorted((a, b) => a.askedAtMs - b.askedAtMs);
  let highest: GrantSeen | undefined;
  let next = 0;
  for (const grant of byAsked) {
    for (; ; next += 1) {
      const before = byGranted[next];
      if (before === undefined || before.grantedAtMs >= grant.askedAtMs) break;
      if (highest === undefined || before.token > highest.token) highest = before;
    }
    if (highest !== undefined && highest.token >= grant.token) {
      wrong.push(`S1: ${describe(grant)} on "${lock}" came after ${describe(highest)}`);
    }
  }
  for (const [token, same] of Map.groupBy(grants, (grant) => grant.token)) {
    if (same.length > 1) {
      wrong.push(
        `S1: token ${token} of "${lock}" came to ${same.map((grant) => grant.client).join(' and ')}`,
      );
    }
  }
  return wrong;
}

function checkExclusion(lock: string, grants: readonly GrantSeen[]): string[] {
  const wrong: string[] = [];
  let last: GrantSeen | undefined;
  for (const grant of grants.toSorted((a, b) => a.grantedAtMs - b.grantedAtMs)) {
    if (last !== undefined && grant.grantedAtMs < last.heldUntilMs) {
      wrong.push(`S2: ${describe(last)} and ${describe(grant)} both held "${lock}"`);
    }
    if (last === undefined || grant.heldUntilMs > last.heldUntilMs) last = grant;
  }
  return wrong;
}

function describe({ client, token, grantedAtMs, heldUntilMs }: GrantSeen): string {
  return `${client} with token ${token} (${grantedAtMs.toFixed(1)} to ${heldUntilMs.toFixed(1)} ms)`;
}
