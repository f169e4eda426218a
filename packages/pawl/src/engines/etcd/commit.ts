import { MAX_ADMITTED } from '../../core/holders.ts';
import { EngineUnavailableError } from '../../errors.ts';
import type { CommitResult, ConditionalWrite } from '../engine.ts';
import { codeOf, type EtcdConnection } from './connection.ts';
import type { Floor, Floors } from './floor.ts';
import { type Layout, rangeOf, txnMethod } from './layout.ts';
import { type MessageLeases, NO_LEASE } from './leases.ts';
import type { Op, Txn, TxnAnswer } from './messages.ts';

/**
 * etcd takes 128 operations in a transaction (`--max-txn-ops`): along each path of nested ones, the longest lists of each level count
 * together. Some are left unused.
 */
const OPERATIONS = 120;
/** With so many guards a write fits, as many sessions and all those that it lets in. */
export const MAX_GUARDS = (OPERATIONS - MAX_ADMITTED) / 2;
/** etcd takes requests of 1.5 MB (`--max-request-bytes`); this counts characters, of which few take more than a byte. */
const REQUEST_CHARS = 700_000;

/**
 * Commits conditional writes as nested transactions: each is a transaction of its own within one that etcd carries out in a single entry of
 * its log. Nested conditions are all judged before anything is written, so writes with a common key go into different ones.
 */
export async function commitBatch(
  connection: EtcdConnection,
  layout: Layout,
  floors: Floors,
  leases: MessageLeases,
  batch: readonly ConditionalWrite[],
): Promise<CommitResult[]> {
  const results: CommitResult[] = [];
  const failures: unknown[] = [];
  for (const stage of stagesOf(batch)) {
    const parts = cut(stage).map((part) => commitPart(connection, layout, floors, leases, part));
    for (const answer of await Promise.allSettled(parts)) {
      if (answer.status === 'fulfilled') results.push(...answer.value);
      else failures.push(answer.reason);
    }
    const [failure] = failures;
    if (failure === undefined) continue;
    if (results.length === 0) throw failure;
    const message = `Some writes of a batch happened, of others it is not known: ${(failure as Error).message}`;
    throw new EngineUnavailableError(message, 'indefinite', { cause: failure });
  }
  return results;
}

/** Cuts a batch where a write touches a key that one before it writes: it has to see that one. */
function stagesOf(batch: readonly ConditionalWrite[]): ConditionalWrite[][] {
  const stages: ConditionalWrite[][] = [[]];
  let written = new Set<string>();
  for (const write of batch) {
    const writes = [...write.puts.map(({ key }) => key), ...write.deletes];
    const touches = [...writes, ...write.guards.map(({ key }) => key)];
    if (touches.some((key) => written.has(key))) {
      stages.push([]);
      written = new Set();
    }
    for (const key of writes) written.add(key);
    stages.at(-1)?.push(write);
  }
  return stages;
}

/** Cuts a stage into parts that etcd takes. */
function cut(stage: readonly ConditionalWrite[]): ConditionalWrite[][] {
  const parts: ConditionalWrite[][] = [];
  let longest = 0;
  let chars = 0;
  for (const write of stage) {
    const size = write.puts.reduce((sum, { key, value }) => sum + key.length + value.length, 500);
    const length = Math.min(lengthOf(write), OPERATIONS);
    const last = parts.at(-1);
    const fits =
      last !== undefined &&
      last.length + 1 + Math.max(longest, length) <= OPERATIONS &&
      chars + size <= REQUEST_CHARS;
    if (fits) {
      last.push(write);
      longest = Math.max(longest, length);
      chars += size;
    } else {
      parts.push([write]);
      longest = length;
      chars = size;
    }
  }
  return parts;
}

function lengthOf({ guards, alive, puts, deletes, wakes }: ConditionalWrite): number {
  return Math.max(guards.length + alive.length, puts.length + deletes.length + wakes.length);
}

async function commitPart(
  connection: EtcdConnection,
  layout: Layout,
  floors: Floors,
  leases: MessageLeases,
  part: readonly ConditionalWrite[],
): Promise<CommitResult[]> {
  for (let anew = false; ; ) {
    const floor = floors.current;
    const messages = new MessageKeys(
      layout,
      part.some(({ wakes }) => wakes.length > 0) ? await leases.current() : 0,
    );
    const txn: Txn = {
      compare: [{ key: layout.floor, modRevision: floor.writtenAt }],
      success: part.map((write) => ({ txn: toTxn(layout, floor, messages, write) })),
      failure: [],
    };
    const answer = await connection.call(txnMethod, txn, false).catch((error: unknown) => {
      // Nothing happened, since the lease that its messages were to hang on is gone.
      if (anew || messages.lease === 0 || codeOf(error) !== NO_LEASE) throw error;
      return undefined;
    });
    if (answer === undefined) {
      anew = true;
      leases.replace();
      continue;
    }
    if (answer.succeeded) {
      const version = floor.versionAt(answer.revision);
      const happened = (i: number) => nested(answer, i).succeeded;
      return Promise.all(
        part.map((write, i): CommitResult | Promise<CommitResult> =>
          happened(i) ? { kind: 'committed', version } : whyNot(connection, layout, floor, write),
        ),
      );
    }
    // The floor was raised meanwhile, and nothing happened.
    await floors.reload();
  }
}

/** Keys for the messages of one transaction, none of them twice. */
class MessageKeys {
  readonly lease: number;
  readonly #layout: Layout;
  readonly #counts = new Map<string, number>();

  constructor(layout: Layout, lease: number) {
    this.#layout = layout;
    this.lease = lease;
  }

  next(inbox: string): string {
    const count = this.#counts.get(inbox) ?? 0;
    this.#counts.set(inbox, count + 1);
    return this.#layout.message(inbox, count);
  }
}

function toTxn(layout: Layout, floor: Floor, messages: MessageKeys, write: ConditionalWrite): Txn {
  const { guards, alive, puts, deletes, wakes } = write;
  if (guards.length + alive.length > OPERATIONS) {
    const detail = `${guards.length + alive.length} conditions in one write, more than the ${OPERATIONS} it takes`;
    throw new EngineUnavailableError(
      `etcd was asked for ${detail}; ask for fewer locks at once.`,
      'definite',
    );
  }
  const success: Op[] = [
    ...puts.map(({ key, value }) => ({ put: { key: layout.entry(key), value } })),
    ...deletes.map((key) => ({ remove: layout.entry(key) })),
    ...wakes.map(({ inbox, message }) => ({
      put: { key: messages.next(inbox), value: `${floor.offset} ${message}`, lease: messages.lease },
    })),
  ];
  return {
    compare: [
      ...alive.map((session) => ({ key: layout.alive(session), exists: true as const })),
      ...guards.map(({ key, version }) => ({
        key: layout.entry(key),
        modRevision: version === null ? 0 : floor.revisionOf(version),
      })),
    ],
    success: folded(success, guards.length + alive.length),
    // To look here what is in the way would cost every write, for the few that fail.
    failure: [],
  };
}

/** More operations than a transaction takes, as transactions without a condition. */
function folded(ops: readonly Op[], conditions: number): readonly Op[] {
  if (ops.length <= OPERATIONS / 2) return ops;
  const folds: Op[] = [];
  const size = Math.max(1, Math.min(OPERATIONS / 4, OPERATIONS - conditions));
  for (let i = 0; i < ops.length; i += size) {
    folds.push({ txn: { compare: [], success: ops.slice(i, i + size), failure: [] } });
  }
  return folds;
}

function nested(answer: TxnAnswer, index: number): TxnAnswer {
  const response = answer.responses[index];
  if (response !== null && response !== undefined && 'responses' in response) return response;
  throw new EngineUnavailableError('etcd left out the answer to a write.', 'indefinite');
}

/** What is in the way of a write. Where that is gone by now, or cannot be told, all keys are named: the caller reads anew either way. */
async function whyNot(
  connection: EtcdConnection,
  layout: Layout,
  floor: Floor,
  { alive, guards }: ConditionalWrite,
): Promise<CommitResult> {
  const success = [
    ...alive.map((session) => ({ range: { key: layout.alive(session), keysOnly: true } })),
    ...guards.map(({ key }) => ({ range: { key: layout.entry(key), keysOnly: true } })),
  ];
  const keys = guards.map(({ key }) => key);
  const answer = await connection
    .call(txnMethod, { compare: [], success, failure: [] }, true)
    .catch(() => null);
  if (answer === null) return { kind: 'conflict', keys };
  const ended = alive.filter((_, i) => rangeOf(answer, i).kvs.length === 0);
  if (ended.length > 0) return { kind: 'sessionsEnded', sessions: ended };
  const differing = guards
    .filter(({ version }, i) => {
      const found = rangeOf(answer, alive.length + i).kvs[0]?.modRevision ?? 0;
      return found !== (version === null ? 0 : floor.revisionOf(version));
    })
    .map(({ key }) => key);
  return { kind: 'conflict', keys: differing.length > 0 ? differing : keys };
}
