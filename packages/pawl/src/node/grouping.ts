import { type Command, keyOf, namesOf, requestsOf } from '../core/commands.ts';

/** What deciding a command has to load, and may write. */
export interface Touch {
  /** Of locks. */
  readonly names: readonly string[];
  /** Of the requests' records. */
  readonly requestKeys: readonly string[];
}

/** Something that waits for its command to be decided. */
export interface Pending {
  readonly command: Command;
  readonly touch: Touch;
}

/** @param furtherNames locks that an attempt found to be needed besides those the command names. */
export function touchOf(command: Command, furtherNames: readonly string[] = []): Touch {
  const named = namesOf(command);
  return {
    names: furtherNames.length === 0 && named.length < 2 ? named : [...new Set([...named, ...furtherNames])],
    requestKeys: requestsOf(command).map(keyOf),
  };
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
  let shared = false;
  const touch = (keys: readonly string[], i: number, firstToTouch: Map<string, number>) => {
    for (const key of keys) {
      const first = firstToTouch.get(key);
      if (first === undefined) firstToTouch.set(key, i);
      else if (first !== i) {
        shared = true;
        parent[Math.max(find(first), find(i))] = Math.min(find(first), find(i));
      }
    }
  };
  const names = new Map<string, number>();
  const requests = new Map<string, number>();
  for (const [i, item] of pending.entries()) {
    touch(item.touch.names, i, names);
    touch(item.touch.requestKeys, i, requests);
  }
  if (!shared) return pending.map((item) => [item]);
  const groups = new Map<number, P[]>();
  for (const [i, item] of pending.entries()) {
    const root = find(i);
    const group = groups.get(root);
    if (group === undefined) groups.set(root, [item]);
    else group.push(item);
  }
  return [...groups.values()];
}
