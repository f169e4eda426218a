/** The kinds of faults, each of which can be left out to find which of them a violation needs. */
export const FAULT_KINDS = [
  'delays',
  'lostReplies',
  'refusals',
  'silences',
  'lostWakes',
  'doubledWakes',
  'partitions',
  'pauses',
  'sleeps',
  'wallJumps',
  'drift',
  'crashes',
  'outages',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];
