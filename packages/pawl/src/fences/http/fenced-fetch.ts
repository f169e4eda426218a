import { type Bearer, tokenOf } from '../bearer.ts';
import { FENCING_TOKEN } from './header.ts';

/** A lease, as far as a request under it needs one. */
export interface FetchLease {
  readonly token: bigint;
  /** Sent in place of the token where it is there. */
  readonly sequencer?: string | undefined;
  /** Aborts the requests: work under a lease that is at risk has to stop. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * `fetch` under a lease: every request carries its token, and is aborted with it.
 *
 * @param lease a lease of any lock.
 * @param fetch what sends the requests; the global one unless set.
 * @throws MissingTokenError, InvalidTokenError
 */
export function fencedFetch(
  lease: FetchLease,
  fetch: typeof globalThis.fetch = globalThis.fetch,
): typeof globalThis.fetch {
  const carried = lease?.sequencer ?? tokenOf('fetch', lease as Bearer).toString();
  return (input, init = {}) => {
    const request = input instanceof Request ? input : undefined;
    const headers = new Headers(init.headers ?? request?.headers);
    headers.set(FENCING_TOKEN, carried);
    const signals = [lease.signal, init.signal ?? request?.signal].filter((signal) => signal != null);
    return fetch(input, {
      ...init,
      headers,
      ...(signals.length > 0 ? { signal: AbortSignal.any(signals) } : {}),
    });
  };
}
