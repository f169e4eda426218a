import { BREAK_PREFIX, LOCK_PREFIX, nameOfKey, requestOfKey } from '../../src/core/names.ts';
import { decodeRequest, type Holder, type RequestRecord } from '../../src/core/records.ts';
import type { World } from './world.ts';

/** A promise that was broken. */
export class Violation extends Error {}

interface Seen {
  readonly token: bigint;
  readonly id: string;
}

/** Watches a world from the outside, step by step, and throws when a promise is broken. */
export class Watcher {
  readonly #world: World;
  /** Of each sequence of tokens (a lock and slot), the last grant. */
  readonly #last = new Map<string, Seen>();
  /** The tokens of each grant, by session, request, lock and slot. */
  readonly #grants = new Map<string, bigint>();
  /** Holders of the step before. */
  #held = new Set<string>();
  #waiting = new Map<string, number>();
  /** The records of requests as they were read last. */
  readonly #requests = new Map<string, { readonly value: string; readonly record: RequestRecord }>();

  constructor(world: World) {
    this.#world = world;
  }

  /** @param moved whether the step was a transfer, which moves a grant to another request. */
  check(moved = false): void {
    const held = new Set<string>();
    const waiting = new Map<string, number>();
    for (const { key } of this.#world.store.list(LOCK_PREFIX, 10_000)) {
      const name = nameOfKey(key);
      const lock = this.#world.lock(name);
      if (lock === undefined) continue;
      if (lock.holders.length === 0 && lock.waiting === 0)
        throw new Violation(`${name}: an idle lock left a record`);
      this.#checkTogether(name, lock.permits, lock.holders);
      for (const holder of lock.holders) {
        const id = `${holder.session}/${holder.request}/${name}/${holder.slot}`;
        held.add(id);
        if (!this.#held.has(id) && !holder.ghost) this.#checkGrant(name, holder, id, moved);
      }
      const queue = this.#world.queue(name);
      if (queue.length !== lock.waiting) {
        throw new Violation(`${name}: ${queue.length} waiters, but ${lock.waiting} are counted`);
      }
      for (const waiter of queue) waiting.set(`${waiter.session}/${waiter.request}/${name}`, waiter.ticket);
    }
    this.#checkOrder(held, waiting);
    this.#checkRequests(held, waiting);
    this.#held = held;
    this.#waiting = waiting;
  }

  #checkTogether(name: string, permits: number | null, holders: readonly Holder[]): void {
    const slots = new Set(holders.map((holder) => holder.slot));
    if (slots.size !== holders.length) throw new Violation(`S2: ${name}: two holders on one slot`);
    if (permits !== null && holders.length > permits)
      throw new Violation(`S2: ${name}: more holders than permits`);
    if (permits !== null || holders.length < 2) return;
    if (holders.some((holder) => holder.mode === 'exclusive')) {
      throw new Violation(`S2: ${name}: an exclusive holder beside another`);
    }
    if (new Set(holders.map((holder) => holder.token)).size > 1) {
      throw new Violation(`S7: ${name}: shared holders would refuse each other`);
    }
  }

  #checkGrant(name: string, holder: Holder, id: string, moved: boolean): void {
    const token = holder.token ?? 0n;
    const before = this.#grants.get(id);
    if (before !== undefined && before !== token) throw new Violation(`S5: ${id} was granted twice`);
    this.#grants.set(id, token);
    if (!this.#world.isAlive(holder.session))
      throw new Violation(`S3: ${id} was granted to an ended session`);
    const sequence = `${name}#${holder.mode === 'shared' ? 'run' : holder.slot}`;
    const last = this.#last.get(sequence);
    const highest = maxToken(
      last?.token,
      this.#last.get(`${name}#${holder.mode === 'shared' ? '0' : 'run'}`)?.token,
    );
    if (!moved && highest !== undefined) {
      const joins = holder.mode === 'shared' && token === last?.token;
      if (token < highest || (token === highest && !joins)) {
        throw new Violation(`S1: ${sequence}: token ${token} after ${highest}`);
      }
    }
    this.#last.set(sequence, { token: maxToken(token, last?.token) ?? token, id });
  }

  /** L2: who leaves a queue for the lock was first in it. */
  #checkOrder(held: ReadonlySet<string>, waiting: ReadonlyMap<string, number>): void {
    for (const id of held) {
      const place = id.slice(0, id.lastIndexOf('/'));
      const ticket = this.#waiting.get(place);
      if (ticket === undefined || this.#held.has(id)) continue;
      const name = place.split('/').slice(2).join('/');
      for (const [other, otherTicket] of waiting) {
        if (other.endsWith(`/${name}`) && this.#waiting.has(other) && otherTicket < ticket) {
          throw new Violation(`L2: ${id} passed ${other}`);
        }
      }
    }
  }

  /** Most records are what they were at the step before. */
  #request(key: string, value: string): RequestRecord {
    const known = this.#requests.get(key);
    if (known?.value === value) return known.record;
    const record = decodeRequest(key, value);
    this.#requests.set(key, { value, record });
    return record;
  }

  /** S6: requests, waiters and holders belong to each other, one to one. */
  #checkRequests(held: ReadonlySet<string>, waiting: ReadonlyMap<string, number>): void {
    const places = new Set<string>();
    const breaks = new Set(this.#world.store.list(BREAK_PREFIX, 100_000).map(({ key }) => key));
    const holding = new Set([...held].map((id) => id.slice(0, id.lastIndexOf('/'))));
    for (const { key, value } of this.#world.store.list('req/', 100_000)) {
      if (value.includes('"breaks"'))
        for (const broken of this.#request(key, value).breaks ?? []) breaks.delete(broken);
      if (value.startsWith('{"state":"done"')) continue;
      const { state, locks } = this.#request(key, value);
      const session = key.split('/')[1] ?? '';
      for (const { name } of locks) {
        const place = `${session}/${requestOfKey(key)}/${name}`;
        places.add(place);
        // What an ended session says of itself means nothing; its burial reads it only to clean up.
        if (!this.#world.isAlive(session)) continue;
        if (state === 'waiting' && !waiting.has(place)) throw new Violation(`S6: ${place} waits in no queue`);
        if (state === 'held' && !holding.has(place)) {
          throw new Violation(`S6: ${place} is said to hold, but does not`);
        }
      }
    }
    if (breaks.size > 0) throw new Violation(`S6: nobody owns ${[...breaks]}`);
    for (const place of waiting.keys()) {
      if (!places.has(place)) throw new Violation(`S6: ${place} waits and nobody owns it`);
    }
    for (const id of held) {
      if (!places.has(id.slice(0, id.lastIndexOf('/'))))
        throw new Violation(`S6: ${id} holds and nobody owns it`);
    }
  }
}

function maxToken(a: bigint | undefined, b: bigint | undefined): bigint | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a > b ? a : b;
}
