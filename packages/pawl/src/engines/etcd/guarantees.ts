import type { EngineGuarantees } from '../engine.ts';

/** What the etcd engine promises. */
export const etcdGuarantees: EngineGuarantees = {
  engine: 'etcd',
  survives: 'the loss of f of 2f+1 members',
  expiryDecidedBy: "etcd's leases",
  tokensRestOn: "the store's revision",
  wakeUp: 'watches',
  durable: true,
  mutualExclusion: 'yes',
  needsFencing: true,
  minTtlMs: 2000,
  // Leases last whole seconds and are looked through twice a second.
  sweepMs: 1750,
};
