import type {
  BreakCommand,
  BreakOutcome,
  BuryCommand,
  BuryOutcome,
  CancelCommand,
  CancelOutcome,
  KeyedRequest,
  ReleaseCommand,
  ReleaseOutcome,
  RequestId,
} from './commands.ts';
import type { Draft } from './draft.ts';
import { admit, holderOf, replaceHolder } from './holders.ts';
import { breakKey, lastBreakKey } from './names.ts';
import { encodeBreak, type RequestedLock, type RequestRecord } from './records.ts';

/** Gives back what a request holds, if it holds it under these very tokens (S4), and lets the next in. */
export function release(draft: Draft, command: ReleaseCommand): ReleaseOutcome {
  if (draft.surroundings.ended.has(command.session)) return { kind: 'notHeld' };
  const known = draft.request(command);
  if (known?.state === 'done' && known.how === 'released') return { kind: 'alreadyReleased' };
  const held = command.names.filter(
    (name, i) => holderOf(draft.lock(name), command)?.token === command.tokens[i] && known?.state === 'held',
  );
  if (known === null || held.length === 0) return { kind: 'notHeld' };
  for (const name of held) replaceHolder(draft.lock(name), command);
  draft.requireAlive(command.session);
  finish(draft, command, known, 'released', command.forget);
  for (const name of held) admit(draft, draft.lock(name));
  return { kind: 'released' };
}

/** Undoes an acquire, wherever it got to (S6). One that never arrived is remembered, should it still come. */
export function cancel(draft: Draft, command: CancelCommand): CancelOutcome {
  if (draft.surroundings.ended.has(command.session)) return { kind: 'cancelled', wasGranted: false };
  const known = draft.request(command);
  if (known?.state === 'done') return { kind: 'cancelled', wasGranted: false };
  const to = { session: command.session, request: command.request };
  if (known?.inbox !== undefined && known.inbox !== command.inbox)
    draft.tell(known.inbox, { kind: 'cancelled', to });
  withdraw(draft, command, known);
  if (known !== null || !command.forget) finish(draft, command, known, 'cancelled', command.forget);
  admitAfter(draft, known);
  return { kind: 'cancelled', wasGranted: known?.state === 'held' };
}

/**
 * Removes a request of a session that has ended. A holder with a lock-delay is replaced by a ghost, which belongs to a
 * session that the node opened to last just as long: so the core needs no clock for the delay.
 */
export function bury(draft: Draft, command: BuryCommand): BuryOutcome {
  const known = draft.request(command);
  if (known === null) return { kind: 'buried' };
  // A ghost that has ended by now has served its time: the commit took longer than the lock-delay.
  const ghost = command.ghost !== null && draft.surroundings.ended.has(command.ghost) ? null : command.ghost;
  const haunted: RequestedLock[] = [];
  if (ghost !== null && known.state === 'held') {
    for (const asked of known.locks) {
      const lock = draft.lock(asked.name);
      const holder = holderOf(lock, command);
      if (holder === undefined || holder.lockDelayMs === 0) continue;
      replaceHolder(lock, command, [{ ...holder, session: ghost, lockDelayMs: 0, ghost: true }]);
      haunted.push(asked);
    }
  }
  if (ghost !== null && haunted.length > 0) {
    draft.putRequest(
      { session: ghost, request: command.request },
      { state: 'held', locks: haunted, lockDelayMs: 0, how: null },
    );
  }
  withdraw(draft, command, known);
  draft.deleteRequest(command);
  admitAfter(draft, known);
  return { kind: 'buried' };
}

/** Takes one lock away from its holder, if it holds it under the token that is meant, and records who did it and why. */
export function breakHold(draft: Draft, command: BreakCommand): BreakOutcome {
  const { name, token, by, reason, atMs } = command;
  const lock = draft.lock(name);
  const holder = holderOf(lock, command);
  const known = draft.request(command);
  if (holder === undefined || holder.token !== token || known === null) return { kind: 'notHeld' };
  const { owner, slot, inbox } = holder;
  replaceHolder(lock, command);
  const locks = known.locks.filter((asked) => asked.name !== name);
  const record = encodeBreak({ token, slot, by, reason, atMs, owner });
  draft.putEntry(lastBreakKey(name), record);
  if (!draft.surroundings.ended.has(command.session)) {
    // It is for the holder, which may find its grant gone, so it lasts as long as the request is remembered.
    const key = breakKey(name, token, slot);
    draft.putEntry(key, record);
    const told = { ...known, breaks: [...(known.breaks ?? []), key] };
    if (locks.length === 0) finish(draft, command, told, 'broken', false);
    else draft.putRequest(command, { ...told, locks });
  } else if (locks.length === 0) draft.deleteRequest(command);
  const to = { session: command.session, request: command.request };
  draft.tell(inbox, { kind: 'broken', to, name, reason });
  admit(draft, lock);
  return { kind: 'broken', owner };
}

/** Takes the request out of every lock it waits for or holds. */
function withdraw(draft: Draft, id: RequestId, known: RequestRecord | null): void {
  for (const { name, ticket } of known?.locks ?? []) {
    const lock = draft.lock(name);
    if (known?.state === 'waiting' && ticket !== null) draft.dequeue(lock, ticket);
    if (known?.state === 'held' && holderOf(lock, id) !== undefined) replaceHolder(lock, id);
  }
}

function admitAfter(draft: Draft, known: RequestRecord | null): void {
  if (known === null || known.state === 'done') return;
  for (const { name } of known.locks) admit(draft, draft.lock(name));
}

function finish(
  draft: Draft,
  id: KeyedRequest,
  known: Pick<RequestRecord, 'locks' | 'breaks'> | null,
  how: RequestRecord['how'],
  forget: boolean,
): void {
  if (forget) {
    draft.deleteRequest(id);
    return;
  }
  const { locks = [], breaks } = known ?? {};
  draft.putRequest(id, {
    state: 'done',
    locks: locks.map((asked) => ({ ...asked, ticket: null })),
    lockDelayMs: 0,
    how,
    ...(breaks === undefined ? {} : { breaks }),
  });
}
