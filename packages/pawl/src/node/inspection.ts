import type { RequestId } from '../core/commands.ts';
import {
  breakPrefix,
  encodeName,
  LOCK_PREFIX,
  lastBreakKey,
  lockKey,
  nameOfKey,
  requestKey,
  waitKey,
  waitPrefix,
} from '../core/names.ts';
import {
  type BreakRecord,
  decodeBreak,
  decodeLock,
  decodeRequest,
  decodeWaiter,
  type Holder,
  type LockRecord,
} from '../core/records.ts';
import type { Engine, Entry } from '../engines/engine.ts';
import { InvalidArgumentError } from '../errors.ts';
import { inHalves } from './halving.ts';
import type { BreakTarget, LockState } from './service.ts';

/** So many of the first waiters are shown. */
const WAITERS_SHOWN = 10;
const PAGE = 1000;

/** A lock as it is now. */
export async function inspectLock(engine: Engine, name: string): Promise<LockState> {
  const [state] = await stateOf(engine, [name]);
  return state ?? { name, permits: null, holders: [], waiting: 0, waiters: [], lastBreak: null };
}

/** Locks in use, in the order of their encoded names. */
export async function listLocks(
  engine: Engine,
  prefix: string,
  limit: number,
  after?: string,
): Promise<LockState[]> {
  const from = after === undefined ? undefined : lockKey(after);
  const entries = await engine.list(LOCK_PREFIX + encodeName(prefix), limit, from);
  const names = entries.map((entry) => nameOfKey(entry.key));
  return [...(await inHalves(names, (some) => stateOf(engine, some)))];
}

/** The holder that a forced release means, or `undefined` where nobody holds the lock under that token. */
export async function findHolder(engine: Engine, target: BreakTarget): Promise<Holder | undefined> {
  const key = lockKey(target.name);
  const entry = (await engine.read({ keys: [key], ranges: [] })).entries.get(key);
  if (entry === undefined) return undefined;
  const meant = decodeLock(key, entry.value, entry.version).holders.filter(
    (holder) => holder.token === target.token && (target.slot === undefined || holder.slot === target.slot),
  );
  if (meant.length > 1) {
    const slots = meant.map((holder) => holder.slot).join(', ');
    throw new InvalidArgumentError(
      'slot',
      `one of ${slots}, since several hold the lock under this token`,
      target.slot,
    );
  }
  return meant[0];
}

/** How many wait ahead of `id` in the queue of `name`, or `null` where it does not wait there. Reads those ahead. */
export async function positionOf(engine: Engine, id: RequestId, name: string): Promise<number | null> {
  const key = requestKey(id.session, id.request);
  const entry = (await engine.read({ keys: [key], ranges: [] })).entries.get(key);
  if (entry === undefined) return null;
  const record = decodeRequest(key, entry.value);
  const ticket = record.locks.find((lock) => lock.name === name)?.ticket ?? null;
  if (record.state !== 'waiting' || ticket === null) return null;
  const own = waitKey(name, ticket);
  let ahead = 0;
  let after: string | undefined;
  for (;;) {
    const page: readonly Entry[] = await engine.list(waitPrefix(name), PAGE, after);
    const before = page.filter((waiter) => waiter.key < own).length;
    ahead += before;
    if (before < page.length || page.length < PAGE) return ahead;
    after = page.at(-1)?.key;
  }
}

async function stateOf(engine: Engine, names: readonly string[]): Promise<LockState[]> {
  const read = await engine.read({
    keys: names.flatMap((name) => [lockKey(name), lastBreakKey(name)]),
    ranges: [
      ...names.map((name) => ({ prefix: waitPrefix(name), limit: WAITERS_SHOWN })),
      ...names.map((name) => ({ prefix: breakPrefix(name), limit: 1 })),
    ],
  });
  return names.map((name, i) => {
    const [waiters = [], breaks = []] = [read.ranges[i], read.ranges[names.length + i]];
    const lastBreak = newestOf([...breaks, read.entries.get(lastBreakKey(name))]);
    return toState(name, read.entries.get(lockKey(name)), waiters, lastBreak);
  });
}

/** Of the slots of a semaphore it may be another that was broken last, but the holder of this one has to learn of it. */
function newestOf(entries: readonly (Entry | undefined)[]): BreakRecord | null {
  let newest: BreakRecord | null = null;
  for (const entry of entries) {
    const record = entry === undefined ? null : decodeBreak(entry.key, entry.value);
    if (record !== null && (newest === null || record.token > newest.token)) newest = record;
  }
  return newest;
}

function toState(
  name: string,
  entry: Entry | undefined,
  first: readonly Entry[],
  lastBreak: BreakRecord | null,
): LockState {
  const record: LockRecord | null =
    entry === undefined ? null : decodeLock(entry.key, entry.value, entry.version);
  const holders = (record?.holders ?? []).flatMap(({ token, slot, mode, owner, ghost }) =>
    token === undefined ? [] : [{ token, slot, mode, owner, lockDelay: ghost }],
  );
  const waiters = first.map(({ key, value }) => {
    const { mode, owner } = decodeWaiter(key, value);
    return { mode, owner };
  });
  return {
    name,
    permits: record?.permits ?? null,
    holders,
    waiting: record?.waiting ?? 0,
    waiters,
    lastBreak,
  };
}
