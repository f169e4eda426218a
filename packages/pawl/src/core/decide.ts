import { acquire } from './acquire.ts';
import type { Command, Outcome } from './commands.ts';
import { Draft, type Known, type Loaded, type Surroundings } from './draft.ts';
import { admit } from './holders.ts';
import { breakHold, bury, cancel, release } from './leave.ts';
import type { Version } from './records.ts';
import { transfer } from './transfer.ts';
import type { ConditionalWrite } from './write.ts';

/** What became of some commands, provided that `write` can be committed. */
export interface Decision {
  /** `null` where nothing changes: then the outcomes hold as they are. */
  readonly write: ConditionalWrite | null;
  /** One for each command, in their order. */
  readonly outcomes: readonly Outcome[];
  /** Locks to promote once more after the commit: more waiters may enter than were loaded, or than one write lets in. */
  readonly unfinished: readonly string[];
  /** Ended sessions that are first in a queue and have to be buried for it to go on. */
  readonly inTheWay: readonly string[];
  /** What the records of all that was touched are once the write was committed at this version. */
  readonly after: (version: Version) => Known;
  /** If not empty, the decision is void: load these locks too and decide again. */
  readonly missing: readonly string[];
}

/**
 * The lock algorithm: decides commands one after the other on what was loaded, and says which one conditional
 * write makes all of it true. A pure function; if the write meets a conflict, load anew and decide again.
 *
 * @param loaded all locks and requests that the commands name, from one snapshot of the store. A lock's `head` holds
 *   its first waiters; more of them let longer runs of shared waiters enter in one write.
 */
export function decide(loaded: Loaded, commands: readonly Command[], surroundings: Surroundings): Decision {
  const draft = new Draft(loaded, surroundings);
  const outcomes = commands.map((command) => apply(draft, command));
  return {
    write: draft.toWrite(),
    outcomes,
    unfinished: draft.unfinished,
    inTheWay: draft.inTheWay,
    after: (version) => draft.after(version),
    missing: draft.missing,
  };
}

function apply(draft: Draft, command: Command): Outcome {
  switch (command.kind) {
    case 'acquire':
      return acquire(draft, command);
    case 'release':
      return release(draft, command);
    case 'cancel':
      return cancel(draft, command);
    case 'bury':
      return bury(draft, command);
    case 'break':
      return breakHold(draft, command);
    case 'transfer':
      return transfer(draft, command);
    case 'promote':
      admit(draft, draft.lock(command.name));
      return { kind: 'promoted' };
  }
}
