import type { Entry, ReadQuery, ReadResult } from '../engine.ts';
import { codeOf, type EtcdConnection } from './connection.ts';
import type { Floors } from './floor.ts';
import { endOf, type Layout, rangeOf, txnMethod } from './layout.ts';
import type { KeyValue, RangeOp, TxnAnswer } from './messages.ts';

/** So many ranges are asked for in one transaction; etcd takes 128 (`--max-txn-ops`). */
const RANGES = 100;
/** `OUT_OF_RANGE`: the revision was compacted away. */
const COMPACTED = 11;

/** Entries of one snapshot: all parts are of one revision. */
export async function readSnapshot(
  connection: EtcdConnection,
  layout: Layout,
  floors: Floors,
  { keys, ranges }: ReadQuery,
): Promise<ReadResult> {
  const asked: RangeOp[] = [
    { key: layout.floor },
    ...keys.map((key) => ({ key: layout.entry(key) })),
    ...ranges.map(({ prefix, limit }) => ({
      key: layout.entry(prefix),
      end: endOf(layout.entry(prefix)),
      limit,
    })),
  ];
  const [floorKvs = [], ...answers] = await ofOneRevision(connection, asked);
  const floor = floors.adopt(floorKvs[0]);
  const toEntry = ({ key, value, modRevision }: KeyValue): Entry => ({
    key: layout.keyOf(key),
    value,
    version: floor.versionAt(modRevision),
  });
  const entries = new Map<string, Entry>();
  for (const [kv] of answers.slice(0, keys.length)) {
    if (kv !== undefined) entries.set(layout.keyOf(kv.key), toEntry(kv));
  }
  return { entries, ranges: answers.slice(keys.length).map((kvs) => kvs.map(toEntry)) };
}

/** Lists entries page by page. */
export async function listEntries(
  connection: EtcdConnection,
  layout: Layout,
  floors: Floors,
  { prefix, limit, after }: { prefix: string; limit: number; after: string | undefined },
): Promise<Entry[]> {
  const beyond = after !== undefined && Buffer.compare(Buffer.from(after), Buffer.from(prefix)) >= 0;
  const key = layout.entry(beyond ? `${after}\0` : prefix);
  const asked = [{ key: layout.floor }, { key, end: endOf(layout.entry(prefix)), limit }];
  const [floorKvs = [], kvs = []] = await ofOneRevision(connection, asked);
  const floor = floors.adopt(floorKvs[0]);
  return kvs.map((kv) => ({
    key: layout.keyOf(kv.key),
    value: kv.value,
    version: floor.versionAt(kv.modRevision),
  }));
}

async function ofOneRevision(
  connection: EtcdConnection,
  asked: readonly RangeOp[],
): Promise<(readonly KeyValue[])[]> {
  const parts: RangeOp[][] = [];
  for (let i = 0; i < asked.length; i += RANGES) parts.push(asked.slice(i, i + RANGES));
  for (;;) {
    try {
      const answers = await Promise.all(parts.map((part) => readPart(connection, part, 0)));
      const latest = Math.max(...answers.map(({ revision }) => revision));
      const aligned = await Promise.all(
        answers.map((answer, i) =>
          answer.revision === latest ? answer : readPart(connection, parts[i] ?? [], latest),
        ),
      );
      return aligned.flatMap((answer) => answer.responses.map((_, i) => rangeOf(answer, i).kvs));
    } catch (error) {
      if (codeOf(error) !== COMPACTED) throw error;
    }
  }
}

function readPart(
  connection: EtcdConnection,
  part: readonly RangeOp[],
  revision: number,
): Promise<TxnAnswer> {
  const success = part.map((range) => ({ range: { ...range, revision } }));
  return connection.call(txnMethod, { compare: [], success, failure: [] }, true);
}
