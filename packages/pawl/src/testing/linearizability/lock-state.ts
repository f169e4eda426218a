import type { Mode } from '../../core/records.ts';
import type { Token } from '../../token.ts';
import type { AcquireOperation } from './operations.ts';

/** One who holds. */
export interface Hold {
  readonly session: string;
  /** Its session has ended. Until somebody has cleaned up, and while a lock-delay lasts, it still stands in the way. */
  readonly isOver: boolean;
}

/** One sequence of tokens: that of a lock, or of one slot of a semaphore. */
export interface Sequence {
  /** 0 for a lock. */
  readonly slot: number;
  /** The highest token granted so far; where the last was unknown, the lowest that it can be. */
  readonly highest: Token;
  readonly isKnown: boolean;
  /** The mode of all who hold. */
  readonly mode: Mode;
  /** Whoever holds does so with the highest token; only in shared mode more than one. By their names. */
  readonly holds: readonly Hold[];
}

export interface LockState {
  /** Those that anything happened to, by their slots. */
  readonly sequences: readonly Sequence[];
  /** Sessions that have ended, in order of their names. */
  readonly ended: readonly string[];
  /** Acquires under way that stand, or may stand, in the queue. */
  readonly queued: ReadonlySet<AcquireOperation>;
  /**
   * Whether the last run of shared holders may go on though nobody is seen to hold: whoever timed out may have been granted just then, and have given it
   * back (S6). To all but readers, who share its token, it stands in the way as if it waited.
   */
  readonly goesOn: boolean;
}

const UNTOUCHED = { highest: 0n, isKnown: true, mode: 'exclusive', holds: [] } as const;

/** The sequence of a slot. */
export function sequenceOf({ sequences }: LockState, slot: number): Sequence {
  return sequences.find((each) => each.slot === slot) ?? { slot, ...UNTOUCHED };
}

/** The state with this sequence in place of the one of its slot. */
export function withSequence(state: LockState, sequence: Sequence): LockState {
  const others = state.sequences.filter(({ slot }) => slot !== sequence.slot);
  const before = sequenceOf(state, sequence.slot);
  const goesOn = sequence.holds.length === 0 && before.mode === 'shared' && isGivenBack(state.queued);
  return { ...state, goesOn, sequences: [...others, sequence].sort((a, b) => a.slot - b.slot) };
}

/** Whether one of these may have been granted in shared mode, and give that back. */
function isGivenBack(queued: ReadonlySet<AcquireOperation>): boolean {
  return [...queued].some(({ mode, reply }) => mode === 'shared' && reply === 'refused');
}

/** The sequence with these holds; without any, nothing but the highest token matters. */
export function withHolds(sequence: Sequence, holds: readonly Hold[]): Sequence {
  if (holds.length === 0) return { ...UNTOUCHED, slot: sequence.slot, highest: sequence.highest };
  return { ...sequence, holds: holds.toSorted(byName) };
}

function byName(a: Hold, b: Hold): number {
  if (a.session !== b.session) return a.session < b.session ? -1 : 1;
  return Number(a.isOver) - Number(b.isOver);
}

/** The state without this acquire in the queue. */
export function withoutQueued(state: LockState, operation: AcquireOperation): LockState {
  if (!state.queued.has(operation)) return state;
  const queued = new Set(state.queued);
  queued.delete(operation);
  return { ...state, queued, goesOn: state.goesOn && isGivenBack(queued) };
}

/** The state in words. */
export function describeState({ sequences, queued }: LockState, permits: number | undefined): string {
  const held = sequences.filter(({ holds }) => holds.length > 0).map((each) => describeHeld(each, permits));
  const highest = sequences.map(
    (each) => `${each.highest}${permits === undefined ? '' : ` (slot ${each.slot})`}`,
  );
  const free =
    permits === undefined
      ? `it is free, and its highest token is ${highest[0] ?? 0n}`
      : `none of its ${permits} slots is held, and the highest tokens are ${highest.join(', ') || 'none'}`;
  const waiting =
    queued.size === 0 ? '' : `, and ${[...queued].map(({ client }) => client).join(', ')} may wait for it`;
  return `${held.length === 0 ? free : held.join(', ')}${waiting}`;
}

function describeHeld(
  { slot, highest, isKnown, mode, holds }: Sequence,
  permits: number | undefined,
): string {
  const names = holds.map(({ session, isOver }) => `"${session}"${isOver ? ', which has ended,' : ''}`);
  const who = `${names.length === 1 ? 'session' : 'sessions'} ${names.join(' and ')}`;
  const what = permits === undefined ? 'it' : `slot ${slot} of ${permits}`;
  const how = mode === 'shared' ? ' in shared mode' : '';
  return `${who} ${names.length === 1 ? 'holds' : 'hold'} ${what}${how} with token ${isKnown ? '' : '≥ '}${highest}`;
}
