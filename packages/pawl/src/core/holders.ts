import type { Grant, RequestId } from './commands.ts';
import type { Draft, DraftLock } from './draft.ts';
import type { Holder, Mode, RequestedLock } from './records.ts';

/** The most that hold one lock together: shared holders, or permits of a semaphore. They stand in one record. */
export const MAX_HOLDERS = 1024;

/** The most waiters that one decision lets in, whatever it frees: each of their sessions is a condition of its write, and stores have limits. */
export const MAX_ADMITTED = 32;

/** Nobody holds it and nobody waits: its record goes, and with it its shape. */
export function isIdle(lock: DraftLock): boolean {
  return lock.holders.length === 0 && lock.waiting === 0;
}

/** Whether one more holder of `mode` may enter beside those who are in. */
export function hasRoom(lock: DraftLock, mode: Mode): boolean {
  if (lock.holders.length === 0) return true;
  if (lock.permits !== null) return lock.holders.length < lock.permits;
  return (
    mode === 'shared' && lock.holders.length < MAX_HOLDERS && lock.holders.every((h) => h.mode === 'shared')
  );
}

/** Who is let in, with what a holder's record needs. */
export type Entrant = Pick<Holder, 'session' | 'request' | 'owner' | 'inbox' | 'lockDelayMs'>;

/**
 * Lets `entrant` hold the lock. The caller has made sure that there is room.
 *
 * A fence compares a token with one maximum, so those who hold side by side must not refuse each other: each
 * permit of a semaphore has its own sequence of tokens, and shared holders all have the token of their run, which is
 * that of the first to enter.
 */
export function enter(lock: DraftLock, entrant: Entrant, mode: Mode): Grant {
  const { session, request, owner, inbox, lockDelayMs } = entrant;
  const first = lock.holders[0];
  const joinsRun = lock.permits === null && first !== undefined;
  const slot = lock.permits !== null ? lowestFreeSlot(lock) : mode === 'shared' ? lock.nextShared : 0;
  const token = joinsRun ? first.token : undefined;
  const holder: Holder = { session, request, mode, slot, token, owner, inbox, lockDelayMs, ghost: false };
  lock.holders = [...lock.holders, holder];
  if (mode === 'shared') lock.nextShared += 1;
  lock.changed = true;
  return { name: lock.name, mode, slot, token };
}

/** Replaces the holder of `id` by `replacements` (none: it leaves). */
export function replaceHolder(lock: DraftLock, id: RequestId, replacements: readonly Holder[] = []): void {
  lock.holders = lock.holders.flatMap((holder) => (isOf(holder, id) ? replacements : [holder]));
  if (lock.holders.length === 0) lock.nextShared = 0;
  lock.changed = true;
}

export function holderOf(lock: DraftLock, id: RequestId): Holder | undefined {
  return lock.holders.find((holder) => isOf(holder, id));
}

function isOf(holder: Holder, id: RequestId): boolean {
  return holder.session === id.session && holder.request === id.request;
}

function lowestFreeSlot(lock: DraftLock): number {
  const taken = new Set(lock.holders.map((holder) => holder.slot));
  let slot = 0;
  while (taken.has(slot)) slot += 1;
  return slot;
}

/**
 * Lets in whoever is first in line, and whoever may enter together with them (L2, L3). A waiter that barges or
 * waits for several locks is not let in but told to try.
 */
export function admit(draft: Draft, lock: DraftLock): void {
  while (lock.waiting > 0) {
    const first = lock.queue[0];
    if (first === undefined) {
      draft.goOnLater(lock);
      return;
    }
    if (!hasRoom(lock, first.mode)) return;
    if (draft.surroundings.ended.has(first.session)) {
      draft.bury(first.session);
      return;
    }
    const to = { session: first.session, request: first.request };
    if (first.barging || first.several) {
      draft.tell(first.inbox, { kind: 'claim', to });
      return;
    }
    if (draft.admitted === MAX_ADMITTED) {
      draft.goOnLater(lock);
      return;
    }
    draft.admitted += 1;
    draft.dequeue(lock, first.ticket);
    const grant = enter(lock, first, first.mode);
    const requested: RequestedLock = {
      name: lock.name,
      mode: first.mode,
      permits: lock.permits,
      ticket: null,
    };
    const { lockDelayMs, inbox } = first;
    draft.putRequest(to, { state: 'held', locks: [requested], lockDelayMs, inbox, how: null });
    draft.tell(first.inbox, { kind: 'granted', to, grants: [grant] });
  }
}
