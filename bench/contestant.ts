/** What is measured: an engine of Pawl's or a peer, as a client that locks. */

/** All leases and sessions last so long without renewal, in ms: within the bounds of every server. */
export const TTL_MS = 10_000;

export interface LockClient {
  /** Waits until the lock is granted. @returns what releases it. */
  acquire(lock: string): Promise<() => Promise<unknown>>;
  close(): Promise<void>;
}

export interface Contestant {
  readonly name: string;
  readonly kind: 'engine' | 'peer';
  /** How one who waits learns of a release. */
  readonly waits: string;
  /** @param clients how many will be connected at the same time. */
  connect(clients: number): Promise<LockClient>;
}

/** A server, and those that are measured on it. */
export interface Stage {
  readonly server: string;
  readonly names: readonly string[];
  /** Whether the server can be had on this machine. */
  available(): boolean;
  /** @param onStop is told what stops the server, before it starts. */
  start(onStop: (stop: () => Promise<void>) => void): Promise<readonly Contestant[]>;
}
