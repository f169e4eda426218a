import type { ConditionalWrite, Version } from '../engine.ts';
import type { Floor } from './floor.ts';
import type { Guards } from './guards.ts';
import { pathOfKey } from './keys.ts';
import { guardOf, type Layout } from './layout.ts';
import {
  ANY_VERSION,
  CODE,
  checkOperation,
  deleteOperation,
  NODE,
  type Operation,
  type PartResult,
  setOperation,
} from './protocol.ts';

const EMPTY = Buffer.alloc(0);

/** What one operation of a transaction is there for. */
export type Purpose =
  | { readonly kind: 'condition' }
  | { readonly kind: 'guard'; readonly guard: number }
  | { readonly kind: 'entry'; readonly path: string }
  | { readonly kind: 'wake' };

/** A write as one transaction of ZooKeeper's. */
export interface Transaction {
  readonly operations: readonly Operation[];
  /** One for each operation. */
  readonly purposes: readonly Purpose[];
  /** Of each guard that it counts up, the keys that it puts (`true`) and deletes. */
  readonly changes: ReadonlyMap<number, ReadonlyMap<string, boolean>>;
  /** Paths at which it makes nodes. */
  readonly created: readonly string[];
}

export interface TransactionOptions {
  readonly layout: Layout;
  readonly guards: Guards;
  readonly floor: Floor;
  /** The guards' data versions once what was sent before is done, where they are known; counted on for what this one does. */
  readonly predicted: Map<number, number>;
  readonly deserted: Deserted | undefined;
}

/** Inboxes that are not there: nobody listens. Holds while the node above all inboxes is at `dataVersion`. */
export interface Deserted {
  readonly dataVersion: number;
  readonly inboxes: ReadonlySet<string>;
}

/** Whether everything is known that the write needs: each guarded key was seen at its version, and its guard can be relied on. */
export function isReady(write: ConditionalWrite, guards: Guards): boolean {
  const made = madeBy(write);
  return write.guards.every(({ key, version }) => {
    const guard = guardOf(key);
    const known = guards.version(guard, key);
    if (made.has(key)) return known == null;
    return known === version && guards.dataVersion(guard) !== ANY_VERSION;
  });
}

/** Keys that have to be absent and are put: to make their nodes is the check. */
function madeBy({ guards, puts, deletes }: ConditionalWrite): Set<string> {
  const absent = new Set(guards.filter(({ version }) => version === null).map(({ key }) => key));
  return new Set(puts.map(({ key }) => key).filter((key) => absent.has(key) && !deletes.includes(key)));
}

/**
 * Makes the transaction of a write. Conditions come first: of several reasons for a refusal, ZooKeeper tells the first.
 *
 * @returns `undefined` where the guards cannot be relied on right after what was sent before.
 */
export function toTransaction(write: ConditionalWrite, options: TransactionOptions): Transaction | undefined {
  const { layout, guards, floor, predicted, deserted } = options;
  const entries: [Operation, Purpose][] = [];
  const created: string[] = [];
  const changes = new Map<number, Map<string, boolean>>();
  const made = madeBy(write);
  const relied = new Set(write.guards.filter(({ key }) => !made.has(key)).map(({ key }) => guardOf(key)));
  const change = (key: string, operation: Operation, isPut: boolean) => {
    const guard = guardOf(key);
    const keys = changes.get(guard) ?? new Map<string, boolean>();
    changes.set(guard, keys.set(key, isPut));
    entries.push([operation, { kind: 'entry', path: operation.path }]);
  };

  const deletes = new Set(write.deletes);
  const puts = new Map(write.puts.map(({ key, value }) => [key, value]));
  for (const [key, value] of puts) {
    if (deletes.has(key)) continue;
    const path = pathOfKey(layout.keys, key);
    const known = guards.version(guardOf(key), key);
    if (known == null) created.push(path);
    const data = Buffer.from(value);
    change(key, known == null ? layout.create(path, data) : setOperation(path, data, ANY_VERSION), true);
  }
  for (const key of deletes) {
    // What is not there need not be deleted, if it is still not there.
    if (guards.version(guardOf(key), key) === null) relied.add(guardOf(key));
    else change(key, deleteOperation(pathOfKey(layout.keys, key)), false);
  }

  const parts: [Operation, Purpose][] = [
    [checkOperation(layout.floor, floor.dataVersion), { kind: 'condition' }],
    ...write.alive.map((id): [Operation, Purpose] => [
      checkOperation(layout.session(id), ANY_VERSION),
      { kind: 'condition' },
    ]),
  ];
  if (deserted !== undefined) {
    parts.push([checkOperation(layout.inboxes, deserted.dataVersion), { kind: 'condition' }]);
  }
  for (const guard of new Set([...relied, ...changes.keys()])) {
    const path = layout.guard(guard);
    const at = predicted.get(guard) ?? guards.dataVersion(guard);
    // To be at this version would be to be at any.
    if (relied.has(guard) && (at === undefined || at === ANY_VERSION)) return undefined;
    const expected = relied.has(guard) && at !== undefined ? at : ANY_VERSION;
    const operation = changes.has(guard)
      ? setOperation(path, EMPTY, expected)
      : checkOperation(path, expected);
    parts.push([operation, { kind: 'guard', guard }]);
  }
  for (const guard of changes.keys()) {
    const at = predicted.get(guard) ?? guards.dataVersion(guard);
    if (at !== undefined) predicted.set(guard, (at + 1) | 0);
  }
  parts.push(...entries);
  for (const { inbox, message } of write.wakes) {
    if (deserted?.inboxes.has(inbox) === true) continue;
    const path = `${layout.inbox(inbox)}/m-`;
    const operation = layout.create(path, Buffer.from(message), NODE.persistentSequential);
    parts.push([operation, { kind: 'wake' }]);
  }
  return {
    operations: parts.map(([operation]) => operation),
    purposes: parts.map(([, purpose]) => purpose),
    changes,
    created,
  };
}

/** Notes in `guards` what a transaction that was done has changed. @returns the transaction's zxid, `zxid` where it changed nothing. */
export function noteDone(
  { purposes, changes }: Transaction,
  results: readonly PartResult[],
  zxid: bigint,
  floor: Floor,
  guards: Guards,
): bigint {
  let own = zxid;
  for (const [i, purpose] of purposes.entries()) {
    const stat = results[i]?.stat;
    if (purpose.kind !== 'guard' || stat === undefined) continue;
    own = stat.modifiedZxid;
    const version: Version = own + floor.offset;
    const keys = [...(changes.get(purpose.guard) ?? [])];
    guards.changed(
      purpose.guard,
      stat.dataVersion,
      new Map(keys.map(([key, isPut]) => [key, isPut ? version : null])),
    );
  }
  return own;
}

/** Which operation refused the transaction, and why; `undefined` where it was done. */
export function refusalOf(results: readonly PartResult[]): { index: number; code: number } | undefined {
  // Those before the one that refused are answered with success, those behind it with an inconsistency.
  const index = results.findIndex(({ code }) => code !== CODE.ok);
  return index < 0 ? undefined : { index, code: results[index]?.code ?? 0 };
}
