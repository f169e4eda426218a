import type { FencedOperation, LockOperation, Operation } from '../../src/testing/index.ts';

/**
 * Judges the history of one object by trying every order of every choice of those operations whose outcome is unknown. Far too slow for more
 * than a handful, and written for nothing but to be plainly right: it shares no line with the search.
 */
export function isLinearizableByForce(operations: readonly Operation[]): boolean {
  const doubtful = operations.filter((each) => !certain(each));
  for (let choice = 0; choice < 2 ** doubtful.length; choice += 1) {
    const left = operations.filter((each) => {
      const i = doubtful.indexOf(each);
      return i < 0 || (choice >> i) % 2 === 1;
    });
    if (tryAll([], left)) return true;
  }
  return false;
}

function certain(operation: Operation): boolean {
  return operation.kind === 'end' ? operation.returnedAtMs < Infinity : operation.reply !== 'unknown';
}

function tryAll(before: readonly Operation[], left: readonly Operation[]): boolean {
  if (left.length === 0) return explains(before);
  return left.some((next) => {
    const others = left.filter((each) => each !== next);
    // Whatever returned before this one was called comes before it.
    if (others.some((each) => each.returnedAtMs < next.calledAtMs)) return false;
    return tryAll([...before, next], others);
  });
}

/** Whether a lock or a fence can answer so, asked in this order. Of grants of unknown token some rising tokens have to exist. */
function explains(order: readonly Operation[]): boolean {
  const fenced = order.filter((each): each is FencedOperation => 'resource' in each);
  if (fenced.length > 0) return explainsFence(fenced);
  return explainsLock(order as readonly LockOperation[], 0n, undefined, new Set());
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

/** A token that nobody was told is tried as every one that it can be, up to the highest that anybody names. */
function explainsLock(
  [next, ...rest]: readonly LockOperation[],
  highest: bigint,
  holder: { session: string; token: bigint } | undefined,
  ended: ReadonlySet<string>,
): boolean {
  if (next === undefined) return true;
  if (next.kind === 'end') {
    const left = holder?.session === next.session ? undefined : holder;
    return explainsLock(rest, highest, left, new Set([...ended, next.session]));
  }
  if (next.kind === 'release') {
    const hit = holder?.session === next.session && (next.token === 'unknown' || next.token === holder.token);
    if (next.reply === 'released' && !hit) return false;
    if (next.reply === 'notHeld' && hit) return false;
    return explainsLock(rest, highest, hit ? undefined : holder, ended);
  }
  if (next.reply === 'refused') return holder !== undefined && explainsLock(rest, highest, holder, ended);
  const free = holder === undefined && !ended.has(next.session);
  if (!free) return next.reply === 'unknown' && explainsLock(rest, highest, holder, ended);
  const { session, reply } = next;
  if (reply !== 'unknown') {
    return reply > highest && explainsLock(rest, reply, { session, token: reply }, ended);
  }
  // Tokens in these histories are tenfold numbers below 100, so that there is room between them.
  for (let token = highest + 1n; token <= 100n; token += 1n) {
    if (explainsLock(rest, token, { session, token }, ended)) return true;
  }
  return false;
}
