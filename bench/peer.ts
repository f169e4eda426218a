import type { OpenPeer } from '../packages/pawl/src/lab/torture/peers/peer.ts';
import { type Contestant, TTL_MS } from './contestant.ts';

/** A peer as `pawl torture` has it. `waits`: how one who waits learns of a release. */
export function peer(name: string, waits: string, ports: readonly number[], open: OpenPeer): Contestant {
  return { name, kind: 'peer', waits, connect: () => open(ports, TTL_MS) };
}
