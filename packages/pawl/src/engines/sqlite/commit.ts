import { StoreUnusableError } from '../../errors.ts';
import { MAX_TOKEN } from '../../token.ts';
import type { CommitResult, ConditionalWrite } from '../engine.ts';
import type { Entries } from './entries.ts';
import type { Sessions } from './sessions.ts';
import type { Transaction } from './transactions.ts';
import type { Wakes } from './wakes.ts';

export interface Tables {
  readonly entries: Entries;
  readonly sessions: Sessions;
  readonly wakes: Wakes;
}

/** Does one conditional write as part of a transaction. Everything is checked before anything is written. */
export function commitOne(
  tables: Tables,
  transaction: Transaction,
  write: ConditionalWrite,
  where: string,
): CommitResult {
  const { entries, sessions, wakes } = tables;
  const ended = write.alive.filter((id) => !sessions.isAlive(transaction, id));
  if (ended.length > 0) return { kind: 'sessionsEnded', sessions: ended };
  const differing = write.guards.filter(({ key, version }) => entries.version(key) !== version);
  if (differing.length > 0) return { kind: 'conflict', keys: differing.map(({ key }) => key) };

  if (write.puts.length > 0) {
    if (transaction.version >= MAX_TOKEN) {
      throw new StoreUnusableError(where, 'its versions have run out, since they were raised too far');
    }
    transaction.version += 1n;
  }
  const { version } = transaction;
  for (const { key, value } of write.puts) entries.put(key, value, version);
  for (const key of write.deletes) entries.delete(key);
  wakes.send(transaction, write.wakes, version);
  return { kind: 'committed', version };
}
