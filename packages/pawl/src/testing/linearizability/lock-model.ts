import type { Token } from '../../token.ts';
import type { Model } from './model.ts';
import type { AcquireOperation, EndOperation, LockOperation, ReleaseOperation } from './operations.ts';

export interface LockState {
  /** The highest token granted so far; where the last was unknown, the lowest that it can be. */
  readonly highest: Token;
  readonly holder: { readonly session: string; readonly token: Token | 'unknown' } | undefined;
  /** Sessions that have ended, in order of their names. */
  readonly ended: readonly string[];
}

/** One lock in exclusive mode: S1 (tokens rise), S2 (one holder), S3 (an end is final), S4 (only the holder releases). */
export const lockModel: Model<LockOperation, LockState> = {
  initial: { highest: 0n, holder: undefined, ended: [] },
  step(state, operation) {
    switch (operation.kind) {
      case 'acquire':
        return acquire(state, operation);
      case 'release':
        return release(state, operation);
      case 'end':
        return end(state, operation);
    }
  },
  key: ({ highest, holder, ended }) =>
    JSON.stringify([`${highest}`, holder?.session, holder && `${holder.token}`, ...ended]),
  describe: ({ highest, holder }) =>
    holder === undefined
      ? `it is free, and its highest token is ${highest}`
      : `session "${holder.session}" holds it with token ${holder.token === 'unknown' ? `≥ ${highest}` : highest}`,
};

function acquire(state: LockState, { session, reply }: AcquireOperation): LockState | undefined {
  if (reply === 'refused') return state.holder === undefined ? undefined : state;
  if (state.holder !== undefined || state.ended.includes(session)) return undefined;
  if (reply === 'unknown') {
    return { ...state, highest: state.highest + 1n, holder: { session, token: 'unknown' } };
  }
  return reply > state.highest ? { ...state, highest: reply, holder: { session, token: reply } } : undefined;
}

function release(state: LockState, { session, token, reply }: ReleaseOperation): LockState | undefined {
  const { holder, highest } = state;
  const same = holder?.session === session;
  const certainly = same && (token === 'unknown' || holder.token === token);
  const possibly = same && holder.token === 'unknown' && token !== 'unknown' && token >= highest;
  if (reply === 'notHeld') return certainly ? undefined : state;
  if (!certainly && !possibly) return undefined;
  return { ...state, highest: possibly ? token : highest, holder: undefined };
}

function end(state: LockState, { session, returnedAtMs }: EndOperation): LockState | undefined {
  const frees = state.holder?.session === session;
  // An end that frees nothing only forbids; one that may never have come need not.
  if (!frees && returnedAtMs === Infinity) return undefined;
  const ended = [...new Set([...state.ended, session])].sort();
  return { ...state, holder: frees ? undefined : state.holder, ended };
}
