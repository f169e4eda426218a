import type { AcquireCommand, AcquireOutcome, AskedLock, Grant } from './commands.ts';
import type { Draft, DraftLock } from './draft.ts';
import { admit, enter, hasRoom, holderOf, isIdle, replaceHolder } from './holders.ts';
import type { RequestedLock, RequestRecord } from './records.ts';

/**
 * Acquires one lock, or several all or nothing.
 *
 * Several locks are queued for in one step, so all queues agree on the order of any two requests, and the request
 * that came first of all is first in each of its queues: it can always go on, hence no deadlock.
 */
export function acquire(draft: Draft, command: AcquireCommand): AcquireOutcome {
  if (draft.surroundings.ended.has(command.session)) return { kind: 'sessionEnded' };
  const known = draft.request(command);
  if (known !== null) return repeat(draft, command, known);

  for (const { name, permits } of command.locks) {
    const lock = draft.lock(name);
    if (isIdle(lock) || lock.permits === permits) continue;
    return { kind: 'shape', name, present: lock.permits, asked: permits };
  }

  const blocked = command.locks.find((ask) => !mayEnterNow(draft.lock(ask.name), ask, command.barging));
  if (blocked === undefined) return letIn(draft, command);
  if (!command.wait) {
    const { name, holders, waiting } = draft.lock(blocked.name);
    return { kind: 'held', name, holders, waiting };
  }
  const { maxWaiters } = draft.surroundings;
  const full = command.locks.find(({ name }) => draft.lock(name).waiting >= maxWaiters);
  if (full !== undefined) return { kind: 'queueFull', name: full.name, limit: maxWaiters };
  return queue(draft, command);
}

/** A newcomer enters a lock with room only if nobody waits, or if both it and the first in line agreed to barging. */
function mayEnterNow(lock: DraftLock, ask: AskedLock, barging: boolean): boolean {
  if (!hasRoom(lock, ask.mode)) return false;
  return lock.waiting === 0 || (barging && lock.queue[0]?.barging === true);
}

function letIn(draft: Draft, command: AcquireCommand): AcquireOutcome {
  const grants = command.locks.map(({ name, mode, permits }) => {
    const lock = draft.lock(name);
    lock.permits = permits;
    return enter(lock, command, mode);
  });
  const { inbox, lockDelayMs } = command;
  draft.putRequest(command, {
    state: 'held',
    locks: requested(command, null),
    lockDelayMs,
    inbox,
    how: null,
  });
  return { kind: 'granted', grants };
}

function queue(draft: Draft, command: AcquireCommand): AcquireOutcome {
  let ahead = 0;
  const tickets = new Map<string, number>();
  for (const { name, mode } of command.locks) {
    const lock = draft.lock(name);
    ahead = Math.max(ahead, lock.waiting);
    const { session, request, owner, inbox, lockDelayMs, barging } = command;
    const ticket = lock.nextTicket;
    const several = command.locks.length > 1;
    draft.enqueue(lock, { ticket, session, request, mode, owner, inbox, lockDelayMs, barging, several });
    tickets.set(name, ticket);
  }
  const { inbox, lockDelayMs } = command;
  draft.putRequest(command, {
    state: 'waiting',
    locks: requested(command, tickets),
    lockDelayMs,
    inbox,
    how: null,
  });
  return { kind: 'queued', ahead };
}

function requested(command: AcquireCommand, tickets: ReadonlyMap<string, number> | null): RequestedLock[] {
  return command.locks.map(({ name, mode, permits }) => ({
    name,
    mode,
    permits,
    ticket: tickets?.get(name) ?? null,
  }));
}

/** The same acquire once more (S5): the same grant, the same place in the queue, or the claim of a waiter. */
function repeat(draft: Draft, command: AcquireCommand, known: RequestRecord): AcquireOutcome {
  if (known.state === 'done') return { kind: 'finished', how: known.how ?? 'released' };
  if (!asksTheSame(command, known))
    return isBrokenPartOf(command, known) ? { kind: 'finished', how: 'broken' } : { kind: 'mismatch' };
  if (known.state === 'held') {
    const holders = known.locks.map(({ name }) => ({ name, holder: holderOf(draft.lock(name), command) }));
    const grants: Grant[] = [];
    for (const { name, holder } of holders) {
      if (holder === undefined) return { kind: 'finished', how: 'broken' };
      grants.push({ name, mode: holder.mode, slot: holder.slot, token: holder.token });
    }
    if (known.inbox !== command.inbox) moveHolders(draft, command, known);
    return { kind: 'granted', grants };
  }
  return claim(draft, command, known);
}

/** A waiter enters if it is first in line everywhere and there is room everywhere. */
function claim(draft: Draft, command: AcquireCommand, known: RequestRecord): AcquireOutcome {
  const places = known.locks.map((asked) => ({ asked, lock: draft.lock(asked.name) }));
  const ready = places.every(
    ({ asked, lock }) => lock.queue[0]?.ticket === asked.ticket && hasRoom(lock, asked.mode),
  );
  if (!ready) {
    if (known.inbox !== command.inbox) moveWaiters(draft, command, known);
    const ahead = places.map(({ asked, lock }) => {
      const index = lock.queue.findIndex((waiter) => waiter.ticket === asked.ticket);
      return index >= 0 ? index : lock.waiting - 1;
    });
    return { kind: 'queued', ahead: Math.max(...ahead) };
  }
  for (const { asked, lock } of places) {
    if (asked.ticket !== null) draft.dequeue(lock, asked.ticket);
  }
  const outcome = letIn(draft, command);
  for (const { lock } of places) admit(draft, lock);
  return outcome;
}

/** The client went to another node: news of its grants go there from now on. */
function moveHolders(draft: Draft, command: AcquireCommand, known: RequestRecord): void {
  const { inbox } = command;
  for (const { name } of known.locks) {
    const lock = draft.lock(name);
    const holder = holderOf(lock, command);
    if (holder !== undefined) replaceHolder(lock, command, [{ ...holder, inbox }]);
  }
  draft.putRequest(command, { ...known, inbox });
}

/** The same for its places in queues. */
function moveWaiters(draft: Draft, command: AcquireCommand, known: RequestRecord): void {
  const { session, request, owner, inbox, lockDelayMs, barging } = command;
  const several = known.locks.length > 1;
  for (const { name, mode, ticket } of known.locks) {
    if (ticket === null) continue;
    const waiter = { ticket, session, request, mode, owner, inbox, lockDelayMs, barging, several };
    draft.replaceWaiter(draft.lock(name), waiter);
  }
  draft.putRequest(command, { ...known, inbox });
}

function asksTheSame(command: AcquireCommand, known: RequestRecord): boolean {
  return (
    command.locks.length === known.locks.length &&
    command.locks.every((ask, i) => {
      const before = known.locks[i];
      return before?.name === ask.name && before.mode === ask.mode && before.permits === ask.permits;
    })
  );
}

/** Whether the request once was for these locks, of which some were broken. */
function isBrokenPartOf(command: AcquireCommand, { locks, breaks }: RequestRecord): boolean {
  return breaks !== undefined && locks.every(({ name }) => command.locks.some((ask) => ask.name === name));
}
