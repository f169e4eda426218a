import { type Command, namesOf, requestsOf } from '../core/commands.ts';
import { lockKey, requestKey } from '../core/names.ts';

/** Something that waits for its command to be decided. */
export interface Pending {
  readonly command: Command;
  /** Locks that earlier attempts found to be needed besides those the command names. */
  readonly extraNames: Set<string>;
}

/**
 * Splits commands into groups that touch no common lock and no common request. Each group is decided as one and
 * becomes one conditional write, so writes of one batch never disturb each other. Order is kept within a group.
 */
export function groupByTouch<P extends Pending>(pending: readonly P[]): P[][] {
  const parent = pending.map((_, i) => i);
  const find = (i: number): number => {
    let root = i;
    for (let up = parent[root] ?? root; up !== root; up = parent[root] ?? root) root = up;
    parent[i] = root;
    return root;
  };
  const firstToTouch = new Map<string, number>();
  for (const [i, item] of pending.entries()) {
    for (const key of touchedKeys(item)) {
      const first = firstToTouch.get(key);
      if (first === undefined) firstToTouch.set(key, i);
      else parent[Math.max(find(first), find(i))] = Math.min(find(first), find(i));
    }
  }
  const groups = new Map<number, P[]>();
  for (const [i, item] of pending.entries()) {
    const root = find(i);
    const group = groups.get(root);
    if (group === undefined) groups.set(root, [item]);
    else group.push(item);
  }
  return [...groups.values()];
}

/** All lock names that deciding `item` has to load. */
export function lockNamesOf(item: Pending): string[] {
  return [...new Set([...namesOf(item.command), ...item.extraNames])];
}

/** What must not be touched by two batches at once. */
export function touchedKeys(item: Pending): string[] {
  const locks = lockNamesOf(item).map(lockKey);
  return [...locks, ...requestsOf(item.command).map((id) => requestKey(id.session, id.request))];
}
