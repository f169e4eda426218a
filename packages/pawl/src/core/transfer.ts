import type { Grant, TransferCommand, TransferOutcome } from './commands.ts';
import type { Draft } from './draft.ts';
import { holderOf, replaceHolder } from './holders.ts';
import type { Holder } from './records.ts';

/** Moves a grant to another session and request. It stays the same grant: slot and token do not change. */
export function transfer(draft: Draft, command: TransferCommand): TransferOutcome {
  const { names, tokens, to, owner, inbox, forget } = command;
  const { ended } = draft.surroundings;
  if (ended.has(to.session)) return { kind: 'notHeld' };
  const moved = draft.request(to);
  if (moved !== null) return repeated(draft, command);
  const known = draft.request(command);
  if (ended.has(command.session) || known?.state !== 'held') return { kind: 'notHeld' };

  const grants: Grant[] = [];
  for (const [i, name] of names.entries()) {
    const holder = holderOf(draft.lock(name), command);
    if (holder === undefined || holder.token !== tokens[i]) return { kind: 'notHeld' };
    grants.push(grantOf(name, holder));
  }
  for (const name of names) {
    const lock = draft.lock(name);
    const holder = holderOf(lock, command);
    if (holder !== undefined) replaceHolder(lock, command, [{ ...holder, ...to, owner, inbox }]);
  }
  draft.requireAlive(command.session);
  // What was broken before stays with the request it was taken from.
  const { state, locks, lockDelayMs, how } = known;
  draft.putRequest(to, { state, locks, lockDelayMs, how, inbox });
  if (forget) draft.deleteRequest(command);
  else draft.putRequest(command, { ...known, state: 'done', how: 'transferred' });
  return { kind: 'transferred', grants };
}

/** The same transfer once more, after a lost reply. */
function repeated(draft: Draft, { names, tokens, to }: TransferCommand): TransferOutcome {
  const grants: Grant[] = [];
  for (const [i, name] of names.entries()) {
    const holder = holderOf(draft.lock(name), to);
    if (holder === undefined || holder.token !== tokens[i]) return { kind: 'notHeld' };
    grants.push(grantOf(name, holder));
  }
  return { kind: 'transferred', grants };
}

function grantOf(name: string, holder: Holder): Grant {
  return { name, mode: holder.mode, slot: holder.slot, token: holder.token };
}
