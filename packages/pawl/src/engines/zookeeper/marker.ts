import { StoreCorruptError } from '../../errors.ts';
import type { ZkSession } from './protocol.ts';

/** What `opened/<id>` says: all it takes to keep the session alive. */
export interface Marker {
  readonly session: ZkSession;
  readonly ttlMs: number;
}

/** @throws StoreCorruptError where this is no marker. */
export function decodeMarker(id: string, text: string): Marker {
  let marker: Readonly<Record<string, unknown>> | null;
  try {
    marker = JSON.parse(text);
  } catch {
    marker = null;
  }
  const { session, password, ttlMs } = marker ?? {};
  const fits =
    typeof session === 'string' &&
    /^-?\d{1,19}$/.test(session) &&
    typeof password === 'string' &&
    Number.isSafeInteger(ttlMs) &&
    (ttlMs as number) > 0;
  if (!fits) throw new StoreCorruptError(`The marker of session "${id}" in ZooKeeper`, 'it cannot be read');
  const zkSession = { id: BigInt(session), password: Buffer.from(password, 'base64') };
  return { session: zkSession, ttlMs: ttlMs as number };
}
