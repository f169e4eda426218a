import { InvalidArgumentError } from '../../errors.ts';
import { fenceModel } from './fence-model.ts';
import { LockModel, type LockStep } from './lock-model.ts';
import type { Model } from './model.ts';
import {
  checkOperation,
  describeOperation,
  type EndOperation,
  type FencedOperation,
  isCertain,
  type Operation,
} from './operations.ts';
import { Search } from './search.ts';
import { HistoryUndecidedError } from './undecided.ts';

export interface LinearizabilityOptions {
  /** How many states of one lock or resource the search may remember; each takes some 100 bytes. 500,000 unless set. */
  readonly maxStates?: number;
}

/** A lock or resource whose history no order of its operations explains. */
export interface Contradiction {
  /** Which, as `lock "a"` or `resource "b"`. */
  readonly of: string;
  /** The longest beginning that an order explains, in that order. */
  readonly placed: readonly Operation[];
  /** One of these has to come next, and none can. */
  readonly unplaced: readonly Operation[];
  /** All this in words. */
  readonly message: string;
}

/**
 * Decides whether a history is linearizable (Herlihy and Wing, "Linearizability: A Correctness Condition for Concurrent Objects", 1990):
 * whether every operation can have taken effect at one moment between its call and its return, so that a lock with fencing tokens, and a
 * fence that knows the highest token, would have given just these replies one after the other.
 *
 * Linearizability is local, so every lock and every resource is judged by itself; the end of a session counts at each lock on its own. The
 * time it takes grows with how many operations are under way at once, not with the length of the history.
 *
 * It judges locks in exclusive and shared mode, and semaphores. A refusal is explained where the request could not be granted: where there is no room
 * beside those who hold, where somebody waits who came to stand in the queue while there was none, or where one that waits for several locks may wait
 * for another of them. It is not asked how long: the core hands a lock over as it becomes free, but for a waiter that barges or waits for several
 * locks, whose session has just ended, or behind a long queue, it is free for a while, and whoever does not wait is refused. Nor is it asked who
 * came first (L2), which nobody sees from outside. It does not know which token, or slot, an acquire of unknown outcome was granted, and need not.
 *
 * @param operations in any order.
 * @returns the contradictions; none if the history is linearizable.
 * @throws HistoryUndecidedError where it needed more than `maxStates` and found no contradiction elsewhere; InvalidArgumentError where an
 *   operation is none, or acquires of one name do not agree on what it is.
 */
export function checkLinearizable(
  operations: readonly Operation[],
  { maxStates = 500_000 }: LinearizabilityOptions = {},
): Contradiction[] {
  if (!Number.isSafeInteger(maxStates) || maxStates < 1) {
    throw new InvalidArgumentError('maxStates', 'a whole number from 1 up', maxStates);
  }
  for (const operation of operations) checkOperation(operation);
  const undecided: string[] = [];
  const contradictions: Contradiction[] = [];
  const judge = <O extends Operation | LockStep, S>(of: string, own: readonly O[], model: Model<O, S>) => {
    const found = new Search(own, model, happened, maxStates).run();
    if (found.kind === 'undecided') undecided.push(of);
    if (found.kind !== 'stuck') return;
    const placed = found.placed.flatMap((each: Operation | LockStep) => (isSeen(each) ? [each] : []));
    const unplaced = [
      ...new Set(found.unplaced.map((each: Operation | LockStep) => (isSeen(each) ? each : each.of))),
    ];
    const message = explain(of, placed, unplaced, model.describe(found.state));
    contradictions.push({ of, placed, unplaced, message });
  };
  for (const [lock, own] of byLock(operations)) judge(`lock "${lock}"`, own, new LockModel(own));
  for (const [resource, own] of byResource(operations)) judge(`resource "${resource}"`, own, fenceModel);
  // One contradiction decides.
  const first = undecided[0];
  if (first !== undefined && contradictions.length === 0) throw new HistoryUndecidedError(first, maxStates);
  return contradictions;
}

function byLock(operations: readonly Operation[]): Map<string, LockStep[]> {
  const asked = operations.filter((each) => each.kind === 'acquire' || each.kind === 'release');
  const ends = Map.groupBy(
    operations.filter((each) => each.kind === 'end'),
    ({ session }) => session,
  );
  const locks = new Map<string, LockStep[]>();
  for (const [lock, own] of Map.groupBy(asked, (each) => each.lock)) {
    const shapes = new Set(own.flatMap((each) => (each.kind === 'acquire' ? [each.permits] : [])));
    if (shapes.size > 1) {
      throw new InvalidArgumentError(
        'permits',
        `the same for all acquires of "${lock}"`,
        [...shapes].join(' and '),
      );
    }
    const sessions = new Set(own.map(({ session }) => session));
    const left = own.flatMap(departureOf);
    locks.set(lock, [
      ...left,
      ...own,
      ...[...sessions].flatMap((session) => (ends.get(session) ?? []).flatMap(withBurial)),
    ]);
  }
  return locks;
}

function departureOf(operation: Operation): LockStep[] {
  if (operation.kind !== 'acquire' || operation.reply !== 'refused') return [];
  const { client, returnedAtMs, leftAtMs = Infinity } = operation;
  if (leftAtMs === Infinity) return [];
  return [{ kind: 'departure', of: operation, client, calledAtMs: returnedAtMs, returnedAtMs: leftAtMs }];
}

/** Where it is known until when all is free, that is judged too. */
function withBurial(end: EndOperation): LockStep[] {
  const { client, session, calledAtMs, returnedAtMs } = end;
  if (returnedAtMs === Infinity) return [end];
  return [end, { kind: 'burial', session, of: end, client, calledAtMs, returnedAtMs }];
}

function byResource(operations: readonly Operation[]): Map<string, FencedOperation[]> {
  const fenced = operations.filter(
    (each): each is FencedOperation => each.kind === 'write' || each.kind === 'raise',
  );
  return Map.groupBy(fenced, ({ resource }) => resource);
}

/** All but what follows an operation without being one: of that, the operation is to be seen. */
function isSeen(step: Operation | LockStep): step is Operation {
  return step.kind !== 'burial' && step.kind !== 'departure';
}

function happened(step: Operation | LockStep): boolean {
  return !isSeen(step) || isCertain(step);
}

/** How many of the operations before the contradiction are told. */
const TOLD = 6;

function explain(
  of: string,
  placed: readonly Operation[],
  unplaced: readonly Operation[],
  state: string,
): string {
  const told = placed.slice(-TOLD).map((each) => `\n  ${describeOperation(each)}`);
  const left = unplaced.map((each) => `\n  ${describeOperation(each)}`);
  const before =
    placed.length > TOLD ? `${placed.length} operations, the last of which are` : 'these operations';
  const after = placed.length === 0 ? 'At the start' : `After ${before}${told.join('')}\n`;
  return `The history of ${of} is not linearizable. ${after} ${state}; one of these has to come next, and none can:${left.join('')}`;
}
