import { expect } from 'vitest';
import { client } from '../server/setup.ts';

/** What a server may answer to what it cannot take; one of its own faults is not among it. */
export const CODE = /^PAWL_(?!SERVER_FAULT)[A-Z_]+$/;

/** Somebody who works with the server all the time, and notices whatever is broken. */
export async function bystander(url: string): Promise<() => Promise<void>> {
  const pawl = await client(url);
  const lease = await pawl.acquire('bystander', { ttlMs: 60_000 });
  let last = lease.token;
  return async () => {
    lease.assertHeld();
    const { token } = await pawl.withLock('again', async (each) => each);
    expect(token).toBeGreaterThan(last);
    last = token;
  };
}
