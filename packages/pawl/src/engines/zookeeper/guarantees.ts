import type { EngineGuarantees } from '../engine.ts';

/** Two ticks of a server whose `tickTime` was not set: it grants no shorter session. */
export const DEFAULT_MIN_TTL_MS = 4000;

/** What the ZooKeeper engine promises, on servers whose `tickTime` was not set. */
export const zookeeperGuarantees: EngineGuarantees = guaranteesFor(DEFAULT_MIN_TTL_MS);

/** @param minTtlMs two ticks of the servers': the feed may be one late, since a server looks for the expired once a tick. */
export function guaranteesFor(minTtlMs: number): EngineGuarantees {
  return {
    engine: 'zookeeper',
    survives: 'the loss of f of 2f+1 servers',
    expiryDecidedBy: "ZooKeeper's sessions",
    tokensRestOn: 'the zxid of the transaction',
    wakeUp: 'watch',
    durable: true,
    mutualExclusion: 'yes',
    needsFencing: true,
    minTtlMs,
    sweepMs: Math.ceil(minTtlMs / 2) + 500,
  };
}
