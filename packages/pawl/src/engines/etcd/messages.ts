import { WireReader, WireWriter } from './wire.ts';

/*
 * The messages of etcd's API v3 that the engine sends and reads; numbers of fields as in etcd's rpc.proto and kv.proto. Keys and values are
 * UTF-8. Fields that nothing reads are skipped.
 */

/** A key, or all keys from it up to `end`. */
export interface RangeOp {
  readonly key: string;
  readonly end?: string;
  readonly limit?: number;
  readonly keysOnly?: boolean;
  readonly countOnly?: boolean;
  /** As the store was at this revision; now unless set. */
  readonly revision?: number;
}

export interface PutOp {
  readonly key: string;
  readonly value: string;
  readonly lease?: number;
}

export type Op =
  | { readonly range: RangeOp }
  | { readonly put: PutOp }
  | { readonly remove: string }
  | { readonly txn: Txn };

/** The key was last written at this revision; 0: it is absent. Or it exists. */
export type Compare =
  | { readonly key: string; readonly modRevision: number }
  | { readonly key: string; readonly exists: true };

export interface Txn {
  readonly compare: readonly Compare[];
  readonly success: readonly Op[];
  readonly failure: readonly Op[];
}

export interface KeyValue {
  key: string;
  value: string;
  modRevision: number;
  lease: number;
}

export interface RangeAnswer {
  readonly kvs: readonly KeyValue[];
}

export interface TxnAnswer {
  revision: number;
  succeeded: boolean;
  /** Ranges and transactions have an answer, puts and deletes none that is of interest. */
  readonly responses: (RangeAnswer | TxnAnswer | null)[];
}

export function encodeTxn(txn: Txn): Buffer {
  const writer = new WireWriter();
  writeTxn(writer, txn);
  return writer.finish();
}

function writeTxn(writer: WireWriter, { compare, success, failure }: Txn): void {
  for (const each of compare) writer.message(1, () => writeCompare(writer, each));
  for (const op of success) writer.message(2, () => writeOp(writer, op));
  for (const op of failure) writer.message(3, () => writeOp(writer, op));
}

const GREATER = 1;
const TARGET_VERSION = 0;
const TARGET_MOD = 2;

function writeCompare(writer: WireWriter, compare: Compare): void {
  if ('exists' in compare) {
    writer.integer(1, GREATER);
    writer.integer(2, TARGET_VERSION);
    writer.text(3, compare.key);
    writer.chosen(4, 0);
    return;
  }
  writer.integer(2, TARGET_MOD);
  writer.text(3, compare.key);
  writer.chosen(6, compare.modRevision);
}

function writeOp(writer: WireWriter, op: Op): void {
  if ('range' in op) writer.message(1, () => writeRange(writer, op.range));
  else if ('put' in op) {
    const { key, value, lease = 0 } = op.put;
    writer.message(2, () => {
      writer.text(1, key);
      writer.text(2, value);
      writer.integer(3, lease);
    });
  } else if ('remove' in op) writer.message(3, () => writer.text(1, op.remove));
  else writer.message(4, () => writeTxn(writer, op.txn));
}

function writeRange(writer: WireWriter, range: RangeOp): void {
  writer.text(1, range.key);
  writer.text(2, range.end ?? '');
  writer.integer(3, range.limit ?? 0);
  writer.integer(4, range.revision ?? 0);
  writer.integer(8, range.keysOnly ?? false);
  writer.integer(9, range.countOnly ?? false);
}

export function decodeTxn(buffer: Buffer): TxnAnswer {
  return readTxn(new WireReader(buffer));
}

function readTxn(reader: WireReader): TxnAnswer {
  const answer: TxnAnswer = { revision: 0, succeeded: false, responses: [] };
  while (reader.next()) {
    if (reader.field === 1) answer.revision = readRevision(reader.message());
    else if (reader.field === 2) answer.succeeded = reader.boolean();
    else if (reader.field === 3) answer.responses.push(readResponse(reader.message()));
    else reader.skip();
  }
  return answer;
}

function readResponse(reader: WireReader): RangeAnswer | TxnAnswer | null {
  let response: RangeAnswer | TxnAnswer | null = null;
  while (reader.next()) {
    if (reader.field === 1) response = { kvs: readKvs(reader.message(), 2) };
    else if (reader.field === 4) response = readTxn(reader.message());
    else reader.skip();
  }
  return response;
}

function readKvs(reader: WireReader, field: number): KeyValue[] {
  const kvs: KeyValue[] = [];
  while (reader.next()) {
    if (reader.field === field) kvs.push(readKeyValue(reader.message()));
    else reader.skip();
  }
  return kvs;
}

function readKeyValue(reader: WireReader): KeyValue {
  const kv: KeyValue = { key: '', value: '', modRevision: 0, lease: 0 };
  while (reader.next()) {
    if (reader.field === 1) kv.key = reader.text();
    else if (reader.field === 3) kv.modRevision = reader.integer();
    else if (reader.field === 5) kv.value = reader.text();
    else if (reader.field === 6) kv.lease = reader.integer();
    else reader.skip();
  }
  return kv;
}

function readRevision(reader: WireReader): number {
  let revision = 0;
  while (reader.next()) {
    if (reader.field === 3) revision = reader.integer();
    else reader.skip();
  }
  return revision;
}

export function encodeLeaseGrant({ id, ttlSeconds }: { id: number; ttlSeconds: number }): Buffer {
  const writer = new WireWriter();
  writer.integer(1, ttlSeconds);
  writer.integer(2, id);
  return writer.finish();
}

/** The id and the TTL that etcd chose. */
export function decodeLeaseGrant(buffer: Buffer): { id: number; ttlSeconds: number } {
  const reader = new WireReader(buffer);
  const answer = { id: 0, ttlSeconds: 0 };
  while (reader.next()) {
    if (reader.field === 2) answer.id = reader.integer();
    else if (reader.field === 3) answer.ttlSeconds = reader.integer();
    else reader.skip();
  }
  return answer;
}

/** The request to revoke a lease, and that to keep one alive. */
export function encodeLeaseId(id: number): Buffer {
  const writer = new WireWriter();
  writer.integer(1, id);
  return writer.finish();
}

/** A lease that was kept alive; of one that is gone the TTL is 0. */
export const decodeKeepAlive = decodeLeaseGrant;

export type WatchRequest =
  | {
      readonly create: {
        readonly id: number;
        readonly key: string;
        readonly end: string;
        /** From this revision on; from now on where it is 0. */
        readonly since: number;
        readonly only: 'puts' | 'deletes';
      };
    }
  | { readonly cancel: number }
  | { readonly progress: true };

export function encodeWatch(request: WatchRequest): Buffer {
  const writer = new WireWriter();
  if ('create' in request) {
    const { id, key, end, since, only } = request.create;
    writer.message(1, () => {
      writer.text(1, key);
      writer.text(2, end);
      writer.integer(3, since);
      // A filter names what is left out: 0 puts, 1 deletes.
      writer.chosen(5, only === 'puts' ? 1 : 0);
      writer.integer(7, id);
    });
  } else if ('cancel' in request) writer.message(2, () => writer.integer(1, request.cancel));
  else writer.message(3, () => {});
  return writer.finish();
}

export interface WatchNews {
  revision: number;
  id: number;
  created: boolean;
  canceled: boolean;
  /** Why it was cancelled, where etcd says so. */
  cancelReason: string;
  /** Set where the revisions asked for are gone: the first that is left. */
  compactRevision: number;
  kvs: KeyValue[];
}

export function decodeWatch(buffer: Buffer): WatchNews {
  const reader = new WireReader(buffer);
  const news: WatchNews = {
    revision: 0,
    id: 0,
    created: false,
    canceled: false,
    cancelReason: '',
    compactRevision: 0,
    kvs: [],
  };
  while (reader.next()) {
    if (reader.field === 1) news.revision = readRevision(reader.message());
    else if (reader.field === 2) news.id = reader.integer();
    else if (reader.field === 3) news.created = reader.boolean();
    else if (reader.field === 4) news.canceled = reader.boolean();
    else if (reader.field === 5) news.compactRevision = reader.integer();
    else if (reader.field === 6) news.cancelReason = reader.text();
    else if (reader.field === 11) news.kvs.push(...readKvs(reader.message(), 2));
    else reader.skip();
  }
  return news;
}

export function encodeAuthenticate({ user, password }: { user: string; password: string }): Buffer {
  const writer = new WireWriter();
  writer.text(1, user);
  writer.text(2, password);
  return writer.finish();
}

/** The token to send with every request. */
export function decodeAuthenticate(buffer: Buffer): string {
  const reader = new WireReader(buffer);
  let token = '';
  while (reader.next()) {
    if (reader.field === 2) token = reader.text();
    else reader.skip();
  }
  return token;
}

export function encodeNothing(): Buffer {
  return Buffer.alloc(0);
}

/** The version of the member that answered, and whether it knows a leader. */
export function decodeStatus(buffer: Buffer): { version: string; hasLeader: boolean; alarms: string[] } {
  const reader = new WireReader(buffer);
  const status = { version: '', hasLeader: false, alarms: [] as string[] };
  while (reader.next()) {
    if (reader.field === 2) status.version = reader.text();
    else if (reader.field === 4) status.hasLeader = reader.boolean();
    else if (reader.field === 8) status.alarms.push(reader.text());
    else reader.skip();
  }
  return status;
}

/** How many members vote. */
export function decodeMembers(buffer: Buffer): number {
  const reader = new WireReader(buffer);
  let voting = 0;
  while (reader.next()) {
    if (reader.field === 2) {
      const member = reader.message();
      let learner = false;
      while (member.next()) {
        if (member.field === 5) learner = member.boolean();
        else member.skip();
      }
      if (!learner) voting += 1;
    } else reader.skip();
  }
  return voting;
}
