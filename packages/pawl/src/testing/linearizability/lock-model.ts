import { MAX_HOLDERS } from '../../core/holders.ts';
import type { Mode } from '../../core/records.ts';
import {
  describeState,
  type LockState,
  type Sequence,
  sequenceOf,
  withHolds,
  withoutQueued,
  withSequence,
} from './lock-state.ts';
import type { Model } from './model.ts';
import type {
  AcquireOperation,
  EndOperation,
  LockOperation,
  OperationTimes,
  ReleaseOperation,
} from './operations.ts';

/** What its session held is free, which comes some time after the session's end: the cleaning up, the lock-delay. */
export interface Burial extends OperationTimes {
  readonly kind: 'burial';
  readonly session: string;
  readonly of: EndOperation;
}

/** Nothing is left any more of an acquire that timed out. */
export interface Departure extends OperationTimes {
  readonly kind: 'departure';
  readonly of: AcquireOperation;
}

export type LockStep = LockOperation | Burial | Departure;

/**
 * A lock that may be held exclusively or shared, or a semaphore: S1 (tokens rise, those of each slot by themselves; shared holders have the token
 * of their run), S2 (one holder, or many shared ones, or one for each slot), S3 (an end is final), S4 (only the holder releases), S6 (whoever timed
 * out had to wait).
 *
 * A refusal is explained where there is no room, or where somebody waits: whoever asks but once passes no waiter. An acquire that waits has come to
 * stand in the queue once it was under way where it could not be granted, and stands there until it is granted or over. That is as much as the core
 * promises. The order in which waiters are served (L2) is not judged: from outside nobody sees who came first.
 */
export class LockModel implements Model<LockStep, LockState> {
  readonly initial: LockState = { sequences: [], ended: [], queued: new Set(), goesOn: false };
  readonly #permits: number | undefined;
  /** The slots that some operation names: they cannot stand for each other. */
  readonly #named: ReadonlySet<number>;
  /** A number for each acquire. */
  readonly #ids: ReadonlyMap<LockStep, number>;
  /** What stands in the queue for those that timed out and may have left something behind. */
  readonly #leftovers: ReadonlyMap<AcquireOperation, AcquireOperation>;
  /** Sessions with so few acquires that once they hold, their end forbids nothing more. */
  readonly #singles: ReadonlySet<string>;

  /** @param operations all that will be asked about. */
  constructor(operations: readonly LockStep[]) {
    const acquires = operations.filter((each) => each.kind === 'acquire');
    this.#permits = acquires.find(({ permits }) => permits !== undefined)?.permits;
    const slots = operations.map((each) => ('slot' in each ? each.slot : undefined));
    this.#named = new Set(slots.filter((slot) => slot !== undefined));
    const left = acquires.filter(({ reply, leftAtMs }) => reply === 'refused' && leftAtMs !== undefined);
    this.#leftovers = new Map(left.map((each) => [each, { ...each }]));
    this.#ids = new Map([...acquires, ...this.#leftovers.values()].map((each, i) => [each, i]));
    const bySession = Map.groupBy(acquires, ({ session }) => session);
    this.#singles = new Set([...bySession].filter(([, own]) => own.length === 1).map(([session]) => session));
  }

  step(state: LockState, operation: LockStep): readonly LockState[] {
    switch (operation.kind) {
      case 'acquire':
        return operation.reply === 'refused' ? this.#refuse(state, operation) : this.#grant(state, operation);
      case 'release':
        return release(state, operation, this.#permits);
      case 'end':
        return this.#end(state, operation);
      case 'burial':
        return bury(state, operation);
      case 'departure':
        return this.#depart(state, operation);
    }
  }

  underWay(state: LockState, operations: readonly LockStep[]): LockState {
    const { queued, ended } = state;
    let left = operations.filter(
      (each): each is AcquireOperation =>
        each.kind === 'acquire' && each.waits === true && !queued.has(each) && !ended.includes(each.session),
    );
    let present = state;
    // Whoever comes to stand in the queue can be what keeps another from being granted.
    for (;;) {
      const come = new Set(left.filter((each) => each.several === true || this.#mayRefuse(present, each)));
      if (come.size === 0) return present;
      left = left.filter((each) => !come.has(each));
      present = { ...present, queued: new Set([...present.queued, ...come]) };
    }
  }

  dropped(state: LockState, operation: LockStep): LockState {
    return operation.kind === 'acquire' ? withoutQueued(state, operation) : state;
  }

  key({ sequences, ended, queued, goesOn }: LockState): string {
    const parts = sequences.map(({ slot, highest, isKnown, mode, holds }) => [
      slot,
      `${highest}`,
      isKnown,
      mode,
      ...holds.map(({ session, isOver }) => [session, isOver]),
    ]);
    const waiting = [...queued].map((each) => this.#ids.get(each) ?? -1).sort((a, b) => a - b);
    return JSON.stringify([parts, ended, waiting, goesOn]);
  }

  describe(state: LockState): string {
    return describeState(state, this.#permits);
  }

  /** Whoever waited in vain stood in the queue. Whoever did not wait could not be let in at once. */
  #refuse(state: LockState, operation: AcquireOperation): LockState[] {
    if (operation.waits === true) {
      if (!state.queued.has(operation)) return [];
      const left = this.#leftovers.get(operation);
      if (left === undefined) return [withoutQueued(state, operation)];
      return [withoutQueued({ ...state, queued: new Set([...state.queued, left]) }, operation)];
    }
    return this.#mayRefuse(state, operation) ? [state] : [];
  }

  #depart(state: LockState, { of }: Departure): LockState[] {
    const left = this.#leftovers.get(of);
    return left !== undefined && state.queued.has(left) ? [withoutQueued(state, left)] : [];
  }

  #mayRefuse(state: LockState, { mode = 'exclusive', barging = false }: AcquireOperation): boolean {
    if (!this.#hasRoom(state, mode)) return true;
    const queued = [...state.queued];
    if (!barging) return queued.length > 0;
    return queued.some((waiter) => waiter.barging !== true) || this.#mayBeFilled(state, mode, queued);
  }

  /** One that barges passes others that do; but those that timed out may have been let in just before, and have given it back (S6). */
  #mayBeFilled(state: LockState, asked: Mode, queued: readonly AcquireOperation[]): boolean {
    const unseen = queued.filter(
      ({ reply, mode = 'exclusive' }) => reply === 'refused' && this.#hasRoom(state, mode),
    );
    if (this.#permits !== undefined) return countOf(state) + unseen.length >= this.#permits;
    return unseen.some(({ mode }) => mode !== 'shared' || asked !== 'shared');
  }

  #hasRoom(state: LockState, mode: Mode): boolean {
    const count = countOf(state);
    if (this.#permits !== undefined) return count < this.#permits;
    return count === 0 || (mode === 'shared' && state.sequences[0]?.mode === 'shared' && count < MAX_HOLDERS);
  }

  #grant(state: LockState, operation: AcquireOperation): LockState[] {
    if (state.ended.includes(operation.session)) return [];
    const left = withoutQueued(state, operation);
    return this.#slots(state, operation).flatMap((slot) =>
      enter(sequenceOf(state, slot), operation, state.goesOn).map((entered) => withSequence(left, entered)),
    );
  }

  /** Where a grant may be: in the slot that it names, or in any where it is unknown. Of those that nobody ever names one stands for all. */
  #slots({ sequences }: LockState, { reply, slot = 0 }: AcquireOperation): readonly number[] {
    const permits = this.#permits;
    if (permits === undefined) return [0];
    if (reply !== 'unknown') return slot < permits ? [slot] : [];
    const known = new Set([...this.#named, ...sequences.map((each) => each.slot)]);
    let untouched = 0;
    while (known.has(untouched)) untouched += 1;
    return [...known, untouched].filter((each) => each < permits).sort((a, b) => a - b);
  }

  #end(state: LockState, { session, returnedAtMs }: EndOperation): LockState[] {
    const isOpen = returnedAtMs === Infinity;
    const held = state.sequences.filter(({ holds }) => holds.some((each) => isLive(each, session)));
    // An end that frees nothing only forbids; one that may never have come need not.
    if (held.length === 0 && isOpen) return [];
    const isLast = isOpen && this.#singles.has(session);
    const ended = isLast ? state.ended : [...new Set([...state.ended, session])].sort();
    const over = held.map((sequence) => {
      const { holds } = sequence;
      return withHolds(
        sequence,
        holds.map((each) => (each.session === session ? { session, isOver: true } : each)),
      );
    });
    return [over.reduce(withSequence, { ...state, ended })];
  }
}

/** How many hold. */
function countOf({ sequences }: LockState): number {
  return sequences.reduce((sum, { holds }) => sum + holds.length, 0);
}

function isLive(hold: { readonly session: string; readonly isOver: boolean }, session: string): boolean {
  return hold.session === session && !hold.isOver;
}

/** What the sequence becomes as one more holds: it joins a run of shared holders, or nobody else is left. */
function enter(
  sequence: Sequence,
  { session, mode = 'exclusive', reply }: AcquireOperation,
  goesOn: boolean,
): Sequence[] {
  if (reply === 'refused') return [];
  const { slot, highest, isKnown, holds } = sequence;
  const hold = { session, isOver: false };
  const ways: Sequence[] = [];
  if (mode === 'shared' && sequence.mode === 'shared' && holds.length > 0) {
    const joined = withHolds(sequence, [...holds, hold]);
    if (reply === 'unknown') ways.push(joined);
    else if (reply === highest || (!isKnown && reply > highest))
      ways.push({ ...joined, highest: reply, isKnown: true });
  }
  if (holds.every(({ isOver }) => isOver)) {
    const alone = { slot, mode, holds: [hold] };
    const joinsUnseen = goesOn && mode === 'shared' && (reply === 'unknown' || reply === highest);
    if (joinsUnseen) ways.push({ ...alone, highest, isKnown });
    if (reply === 'unknown') ways.push({ ...alone, highest: highest + 1n, isKnown: false });
    else if (reply > highest) ways.push({ ...alone, highest: reply, isKnown: true });
  }
  return ways;
}

function release(
  state: LockState,
  { session, token, slot, reply }: ReleaseOperation,
  permits: number | undefined,
): LockState[] {
  const isMeant = (each: Sequence) => permits === undefined || slot === undefined || each.slot === slot;
  const held = state.sequences.filter(
    (each) => isMeant(each) && each.holds.some((hold) => isLive(hold, session)),
  );
  const isCertain = ({ highest, isKnown }: Sequence) => token === 'unknown' || (isKnown && token === highest);
  if (reply === 'notHeld') return held.some(isCertain) ? [] : [state];
  return held.flatMap((sequence) => {
    const { highest, isKnown, holds } = sequence;
    const isPossible = !isKnown && token !== 'unknown' && token >= highest;
    if (!isCertain(sequence) && !isPossible) return [];
    const left = holds.toSpliced(
      holds.findIndex((each) => isLive(each, session)),
      1,
    );
    const known = isPossible ? { ...sequence, highest: token, isKnown: true } : sequence;
    return [withSequence(state, withHolds(known, left))];
  });
}

function bury(state: LockState, { session }: Burial): LockState[] {
  if (!state.ended.includes(session)) return [];
  const own = state.sequences.filter(({ holds }) => holds.some((each) => each.session === session));
  const freed = own.map((sequence) =>
    withHolds(
      sequence,
      sequence.holds.filter((each) => each.session !== session),
    ),
  );
  return [freed.reduce(withSequence, state)];
}
