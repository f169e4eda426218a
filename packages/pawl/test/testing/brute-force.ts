import type {
  AcquireOperation,
  EndOperation,
  FencedOperation,
  LockOperation,
  Operation,
  ReleaseOperation,
} from '../../src/testing/index.ts';

/**
 * Judges the history of one object by trying every order of every choice of those operations whose outcome is unknown. Far too slow for more
 * than a handful, and written for nothing but to be plainly right: it shares no line with the search.
 */
export function isLinearizableByForce(operations: readonly Operation[]): boolean {
  const fenced = operations.filter((each): each is FencedOperation => 'resource' in each);
  if (fenced.length > 0) return tryFence(fenced);
  return tryLock(
    operations.flatMap((each) => eventsOf(each as LockOperation)),
    EMPTY,
  );
}

function tryFence(operations: readonly FencedOperation[]): boolean {
  const doubtful = operations.filter(({ reply }) => reply === 'unknown');
  for (let choice = 0; choice < 2 ** doubtful.length; choice += 1) {
    const left = operations.filter((each) => {
      const i = doubtful.indexOf(each);
      return i < 0 || (choice >> i) % 2 === 1;
    });
    if (tryAll([], left)) return true;
  }
  return false;
}

function tryAll(before: readonly FencedOperation[], left: readonly FencedOperation[]): boolean {
  if (left.length === 0) return explainsFence(before);
  return left.some((next) => {
    const others = left.filter((each) => each !== next);
    // Whatever returned before this one was called comes before it.
    if (others.some((each) => each.returnedAtMs < next.calledAtMs)) return false;
    return tryAll([...before, next], others);
  });
}

function explainsFence(order: readonly FencedOperation[]): boolean {
  return order.every(({ token, reply }, i) => {
    const honoured = order.slice(0, i).filter((each) => each.reply !== 'refused' && passes(order, each));
    const stale = honoured.some((each) => each.token > token);
    return reply === 'unknown' || (reply === 'refused') === stale;
  });
}

/** One of unknown outcome that takes effect may still have been refused, which changes nothing. */
function passes(order: readonly FencedOperation[], one: FencedOperation): boolean {
  const before = order.slice(0, order.indexOf(one));
  return !before.some((each) => each.reply !== 'refused' && each.token > one.token && passes(order, each));
}

/** Something that happens at one moment. */
interface LockEvent {
  readonly what: 'acquire' | 'join' | 'unseen' | 'release' | 'end' | 'burial';
  readonly of: LockOperation;
  /** Whether it may never have happened. */
  readonly isDoubtful: boolean;
}

interface Holder {
  readonly session: string;
  readonly token: bigint;
  readonly slot: number;
  readonly isShared: boolean;
}

interface Lock {
  /** By slot. */
  readonly highest: ReadonlyMap<number, bigint>;
  readonly holders: readonly Holder[];
  readonly ended: ReadonlySet<string>;
  readonly queue: readonly AcquireOperation[];
}

const EMPTY: Lock = { highest: new Map(), holders: [], ended: new Set(), queue: [] };

/** An acquire that waits may join the queue before it is decided; what an ended session held is free some time after. */
function eventsOf(of: LockOperation): LockEvent[] {
  if (of.kind === 'end') {
    const isDoubtful = of.returnedAtMs === Infinity;
    return [
      { what: 'end', of, isDoubtful },
      { what: 'burial', of, isDoubtful },
    ];
  }
  const itself: LockEvent = { what: of.kind, of, isDoubtful: of.reply === 'unknown' };
  if (of.kind !== 'acquire' || !of.waits) return [itself];
  const events: LockEvent[] = [{ what: 'join', of, isDoubtful: true }, itself];
  // Who timed out may have been let in, unseen, and have given that back: others join a reader, or would have passed one that barges.
  if (of.reply === 'refused' && (of.mode === 'shared' || of.barging === true))
    events.push({ what: 'unseen', of, isDoubtful: true });
  return events;
}

function tryLock(left: readonly LockEvent[], lock: Lock): boolean {
  if (left.every(({ isDoubtful }) => isDoubtful)) return true;
  return left.some((next) => {
    const past = left.filter(({ of }) => of.returnedAtMs < next.of.calledAtMs);
    if (past.some(({ isDoubtful }) => !isDoubtful)) return false;
    // What did not happen in its time never did.
    const missed = past.filter(({ what }) => what === 'acquire').map(({ of }) => of);
    const queue = lock.queue.filter((each) => !missed.includes(each));
    const others = left.filter((each) => each !== next && !past.includes(each));
    return happen(next, { ...lock, queue }, others).some((after) =>
      // Whoever was let in does not join any more.
      tryLock(next.what === 'acquire' ? others.filter(({ of }) => of !== next.of) : others, after),
    );
  });
}

function happen({ what, of }: LockEvent, lock: Lock, left: readonly LockEvent[]): Lock[] {
  switch (what) {
    case 'join': {
      const acquire = of as AcquireOperation;
      const isBlocked = acquire.several === true || mustWait(lock, acquire);
      return isBlocked && !lock.ended.has(acquire.session)
        ? [{ ...lock, queue: [...lock.queue, acquire] }]
        : [];
    }
    case 'unseen': {
      const acquire = of as AcquireOperation;
      if (!lock.queue.includes(acquire)) return [];
      const entered = acquired(lock, { ...acquire, session: unseenOf(acquire), reply: 'unknown' });
      return entered.map((after) => ({ ...after, queue: lock.queue }));
    }
    case 'acquire':
      return acquired(lock, of as AcquireOperation);
    case 'release':
      return released(lock, of as ReleaseOperation);
    case 'end':
      return [{ ...lock, ended: new Set([...lock.ended, (of as EndOperation).session]) }];
    case 'burial': {
      if (left.some((each) => each.of === of)) return [];
      return [
        { ...lock, holders: lock.holders.filter(({ session }) => session !== (of as EndOperation).session) },
      ];
    }
  }
}

function unseenOf({ session, calledAtMs, returnedAtMs }: AcquireOperation): string {
  return `${session}, unseen from ${calledAtMs} to ${returnedAtMs}`;
}

function mustWait({ holders, queue }: Lock, { mode, permits, barging }: AcquireOperation): boolean {
  const isShared = mode === 'shared' && holders.every((each) => each.isShared);
  const isFull = permits === undefined ? holders.length > 0 && !isShared : holders.length >= permits;
  return isFull || queue.some((each) => !(barging && each.barging));
}

/** A token that nobody was told is tried as the next after the highest, and as each that a release can name; a slot as each. */
function acquired(lock: Lock, operation: AcquireOperation): Lock[] {
  const { session, reply, waits, permits, mode } = operation;
  const left = { ...lock, queue: lock.queue.filter((each) => each !== operation) };
  if (reply === 'refused') {
    const holders = lock.holders.filter((each) => each.session !== unseenOf(operation));
    const isRight = waits ? lock.queue.includes(operation) : mustWait(lock, operation);
    return isRight ? [{ ...left, holders }] : [];
  }
  const after: Lock[] = [];
  const all = Array.from({ length: permits ?? 1 }, (_, slot) => slot);
  const slots =
    permits === undefined || reply === 'unknown' ? all : all.filter((each) => each === operation.slot);
  for (const slot of slots) {
    const beside = lock.holders.filter((each) => each.slot === slot);
    const joins = mode === 'shared' && beside.every(({ isShared }) => isShared);
    const highest = lock.highest.get(slot) ?? 0n;
    // Tokens in these histories are tenfold numbers, so that there is room between them.
    const unknown = new Set([highest + 1n, beside[0]?.token ?? 10n, 10n, 20n, 30n, 40n]);
    for (const token of reply === 'unknown' ? unknown : [reply]) {
      if (lock.ended.has(session)) continue;
      const isRight = beside.length === 0 ? token > highest : joins && token === beside[0]?.token;
      if (!isRight) continue;
      const holder = { session, token, slot, isShared: mode === 'shared' };
      const known = new Map([...lock.highest, [slot, token] as const]);
      after.push({ ...left, highest: known, holders: [...lock.holders, holder] });
    }
  }
  return after;
}

function released(lock: Lock, { session, token, slot, reply }: ReleaseOperation): Lock[] {
  const hit = lock.holders.filter(
    (each) =>
      each.session === session &&
      !lock.ended.has(session) &&
      (token === 'unknown' || token === each.token) &&
      (slot === undefined || slot === each.slot),
  );
  if (reply === 'notHeld') return hit.length === 0 ? [lock] : [];
  return hit.map((gone) => ({ ...lock, holders: lock.holders.filter((each) => each !== gone) }));
}
