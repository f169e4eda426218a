/** Where a peer cannot wait by itself, it is asked again after so many ms. */
export const RETRY_MS = 10;

/** A client of a peer's. Its lock has no token. */
export interface PeerClient {
  /** Waits until the lock is granted. @returns what releases it. */
  acquire(lock: string): Promise<() => Promise<unknown>>;
  close(): Promise<void>;
}

/** @param ports where its servers are, on this machine. */
export type OpenPeer = (ports: readonly number[], ttlMs: number) => Promise<PeerClient>;

/** Asks again and again until `attempt` has something. */
export async function untilGranted<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const result = await attempt();
    if (result !== undefined) return result;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}
