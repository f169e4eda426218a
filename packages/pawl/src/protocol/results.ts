import type { BreakOutcome, CancelOutcome, ReleaseOutcome } from '../core/commands.ts';
import type {
  AcquireAnswer,
  GrantedLock,
  KeepAliveAnswer,
  LockState,
  SessionEvent,
  TransferAnswer,
} from '../node/service.ts';
import { checkAnswer } from './answer-shapes.ts';
import type { Method } from './calls.ts';
import { readGrant, readState } from './states.ts';

/** One page of a listing. `more` says whether there may be more of it than fitted. */
export interface ListPage {
  readonly locks: readonly LockState[];
  readonly more: boolean;
}

/** What each request is answered with. */
export interface Results {
  authenticate: null;
  ping: null;
  openSession: string;
  keepAlive: KeepAliveAnswer;
  closeSession: null;
  acquire: AcquireAnswer;
  release: ReleaseOutcome;
  cancel: CancelOutcome;
  transfer: TransferAnswer;
  breakHold: BreakOutcome;
  inspect: LockState;
  list: ListPage;
  position: number | null;
  listen: null;
  unlisten: null;
}

export type ResultOf<M extends Method> = Results[M];

/** Writes an answer as JSON. Tokens become decimal strings; ids of others' sessions never leave the server. */
export function writeReply(number: number, result: Results[Method]): string {
  if (typeof result !== 'object' || result === null) return JSON.stringify({ id: number, result });
  // The common answers are written without a replacer, which is called for every value.
  if ('grants' in result)
    return `{"id":${number},"result":{"kind":"${result.kind}","grants":${writeGrants(result.grants)}}}`;
  if ('kind' in result) return JSON.stringify({ id: number, result: withoutStrangers(result) });
  return JSON.stringify({ id: number, result }, tokenAsText);
}

/** Writes what a session's holder is told as JSON. */
export function writeEvent(session: string, event: SessionEvent): string {
  const { kind, ...told } = event;
  if (event.kind !== 'granted') return JSON.stringify({ event: kind, session, ...told });
  const id = `"session":${JSON.stringify(session)},"request":${JSON.stringify(event.request)}`;
  return `{"event":"granted",${id},"grants":${writeGrants(event.grants)}}`;
}

function writeGrants(grants: readonly GrantedLock[]): string {
  const each = grants.map(({ name, mode, slot, token, sequencer }) => {
    const signed = sequencer === undefined ? '' : `,"sequencer":${JSON.stringify(sequencer)}`;
    return `{"name":${JSON.stringify(name)},"mode":"${mode}","slot":${slot},"token":"${token}"${signed}}`;
  });
  return `[${each.join(',')}]`;
}

/** For `JSON.stringify`: tokens are decimal strings in JSON. */
export function tokenAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}

/** Reads an answer. @throws StoreCorruptError where it is none to this method. */
export function readResult<M extends Method>(method: M, value: unknown): Results[M] {
  checkAnswer(method, value);
  const read = READERS[method];
  // Each reader returns what its method is answered with, which the table's common type forgets.
  return (read === undefined ? value : read(value)) as Results[M];
}

/** Who holds a lock is told as far as `inspect` tells it: whoever knows the id of a session can end it. */
function withoutStrangers(result: object): object {
  return 'holders' in result ? { ...result, holders: [] } : result;
}

const READERS: { readonly [M in Method]?: (value: unknown) => unknown } = {
  acquire: readGrants,
  transfer: readGrants,
  inspect: readState,
  list: (value) => {
    const page = value as { locks: unknown[]; more: boolean };
    return { locks: page.locks.map(readState), more: page.more };
  },
};

function readGrants(value: unknown): unknown {
  const answer = value as { kind: string; grants?: unknown[] };
  if (answer.kind !== 'granted' && answer.kind !== 'transferred') return answer;
  return { kind: answer.kind, grants: (answer.grants ?? []).map(readGrant) };
}
