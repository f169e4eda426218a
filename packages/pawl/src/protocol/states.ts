import type { BreakRecord } from '../core/records.ts';
import { StoreCorruptError } from '../errors.ts';
import type { GrantedLock, HolderState, LockState, SessionEvent } from '../node/service.ts';
import { parseToken, type Token } from '../token.ts';

type Json<T> = Omit<T, 'token'> & { readonly token: unknown };

/** A grant as it came over the wire: its token is text. */
export function readGrant(value: unknown): GrantedLock {
  const { name, mode, slot, token, sequencer } = value as Json<GrantedLock>;
  const grant = { name, mode, slot, token: readToken(token) };
  return sequencer === undefined ? grant : { ...grant, sequencer };
}

/** The state of a lock as it came over the wire. */
export function readState(value: unknown): LockState {
  const state = value as LockState;
  return {
    ...state,
    holders: state.holders.map((holder: Json<HolderState>) => ({
      ...holder,
      token: readToken(holder.token),
    })),
    lastBreak: state.lastBreak === null ? null : readBreak(state.lastBreak),
  };
}

/** What a session's holder is told, with the session, as it came over the wire; `undefined` for what this version does not know. */
export function readEvent(value: unknown): { session: string; event: SessionEvent } | undefined {
  const message = value as { event: string; session: string; request: string; grants: unknown[] };
  const { session, request } = message;
  if (message.event === 'granted')
    return { session, event: { kind: 'granted', request, grants: message.grants.map(readGrant) } };
  if (message.event !== 'broken') return undefined;
  const { name, reason } = value as { name: string; reason: string };
  return { session, event: { kind: 'broken', request, name, reason } };
}

function readBreak(record: Json<BreakRecord>): BreakRecord {
  return { ...record, token: readToken(record.token) };
}

function readToken(text: unknown): Token {
  const token = parseToken(text);
  if (token === undefined)
    throw new StoreCorruptError('The answer of the server', 'a token is no decimal number');
  return token;
}
