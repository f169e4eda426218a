import type { Clock, Timer } from '../clock.ts';
import {
  type AcquireCommand,
  type Grant,
  type KeyedRequest,
  keyOf,
  type News,
  type RequestId,
} from '../core/commands.ts';
import { lockKey, waitPrefix } from '../core/names.ts';
import { decodeLock, decodeRequest, decodeWaiter } from '../core/records.ts';
import type { Engine } from '../engines/engine.ts';
import { StoreCorruptError } from '../errors.ts';
import { TransientMap } from '../transient-map.ts';
import { inHalves } from './halving.ts';

/** So many waiters are asked after by their own records in each look, in turn. */
const ASKED_AFTER = 16;

export interface WaitingRoomOptions {
  readonly engine: Engine;
  readonly clock: Clock;
  /** How often to look whether news got lost, in ms. */
  readonly pollMs: number;
  /** Called with the waiter that may have been let in, or may let itself in: acquire once more. */
  readonly onClaim: (waiter: AcquireCommand) => void;
  readonly onGranted: (to: RequestId, grants: readonly Grant[]) => void;
  /** Called with a waiter that was let in, and whose grant was broken, all unheard. */
  readonly onBroken: (waiter: AcquireCommand) => void;
}

/**
 * The acquires of this node that wait in a queue. A slow poll stands behind the news that wake them: lost news cost
 * latency, never a hang. What it asks of the engine grows with the locks waited for, not with the waiters.
 */
export class WaitingRoom {
  readonly #options: WaitingRoomOptions;
  readonly #waiters = new TransientMap<string, AcquireCommand>();
  #timer: Timer | undefined;

  constructor(options: WaitingRoomOptions) {
    this.#options = options;
  }

  add(waiter: AcquireCommand): void {
    this.#waiters.set(keyOf(waiter), waiter);
    this.#poll();
  }

  remove(id: KeyedRequest): void {
    this.#waiters.delete(keyOf(id));
  }

  /** Removes all waiters of a session that has ended, or that nobody here listens for any more. */
  removeSession(session: string): void {
    for (const waiter of [...this.#waiters.values()]) if (waiter.session === session) this.remove(waiter);
  }

  hear(news: News): void {
    if (news.kind === 'broken') return;
    const waiter = this.#waiters.get(keyOf(news.to));
    if (waiter === undefined) return;
    if (news.kind === 'granted') this.#options.onGranted(news.to, news.grants);
    else if (news.kind === 'claim') this.#options.onClaim(waiter);
    else this.remove(news.to);
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#waiters.clear();
  }

  #poll(): void {
    this.#timer ??= this.#options.clock.setTimer(
      this.#options.pollMs,
      () => {
        this.#timer = undefined;
        void this.#look().finally(() => {
          if (this.#waiters.size > 0) this.#poll();
        });
      },
      { keepProcess: false },
    );
  }

  async #look(): Promise<void> {
    if (this.#waiters.size === 0) return;
    const names = [
      ...new Set([...this.#waiters.values()].flatMap(({ locks }) => locks.map(({ name }) => name))),
    ];
    try {
      const ids = await inHalves(names, (some) => this.#firstOf(some));
      const due = new Map<string, AcquireCommand>();
      for (const id of ids) {
        const waiter = this.#waiters.get(keyOf(id));
        if (waiter !== undefined) due.set(keyOf(id), waiter);
      }
      for (const waiter of due.values()) this.#options.onClaim(waiter);
      await this.#askAfterSome();
    } catch {
      // An engine that cannot be reached is reported by the renewals; the poll just comes again.
    }
  }

  /** Who holds these locks, and who is first in their queues. */
  async #firstOf(names: readonly string[]): Promise<RequestId[]> {
    const { entries, ranges } = await this.#options.engine.read({
      keys: names.map(lockKey),
      ranges: names.map((name) => ({ prefix: waitPrefix(name), limit: 1 })),
    });
    return names.flatMap((name, i) => {
      const entry = entries.get(lockKey(name));
      const first = ranges[i]?.[0];
      const lock = entry && readable(() => decodeLock(entry.key, entry.value, entry.version));
      const waiter = first && readable(() => decodeWaiter(first.key, first.value));
      return [...(lock?.holders ?? []), ...(waiter === undefined ? [] : [waiter])];
    });
  }

  /** Whoever neither holds nor waits is found by its own record only. */
  async #askAfterSome(): Promise<void> {
    const some = [...this.#waiters].slice(0, ASKED_AFTER);
    const { entries } = await this.#options.engine.read({ keys: some.map(([key]) => key), ranges: [] });
    for (const [key] of some) {
      const waiter = this.#waiters.get(key);
      if (waiter === undefined) continue;
      const entry = entries.get(key);
      const record = entry && readable(() => decodeRequest(key, entry.value));
      // Whoever waits on is asked after again once all others were.
      this.#waiters.delete(key);
      if (record?.state !== 'done') this.#waiters.set(key, waiter);
      else if (record.how === 'broken') this.#options.onBroken(waiter);
    }
  }
}

/** What one cannot read keeps nobody waiting who does not need it; whoever does is told by the command that does. */
function readable<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch (error) {
    if (error instanceof StoreCorruptError) return undefined;
    throw error;
  }
}
