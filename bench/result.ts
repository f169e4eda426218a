import type { Contestant } from './contestant.ts';
import type { Cycles, HandOver } from './measure.ts';

/** How many cycle at once. */
export const AT_ONCE = [1, 64, 512] as const;
export type AtOnce = (typeof AT_ONCE)[number];

/** What was measured of one contestant. A cell is absent where it failed. */
export interface Result {
  readonly name: string;
  readonly server: string;
  /** Absent where its server is. */
  readonly kind?: Contestant['kind'];
  readonly waits?: string;
  readonly cycles: Partial<Record<AtOnce, Cycles>>;
  readonly handOver: { shared?: HandOver; each?: HandOver };
  /** Why there is nothing, or not all. */
  readonly notes: string[];
}
