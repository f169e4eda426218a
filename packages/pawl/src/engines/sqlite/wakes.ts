import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Clock } from '../../clock.ts';
import type { Version, Wake } from '../engine.ts';
import { toBytes, toText } from './bytes.ts';
import { Ticker } from './ticker.ts';
import type { Transaction, Transactions } from './transactions.ts';

/** How often it is looked whether other processes have written anything, while anybody wants to know. */
const POLL_PERIOD_MS = 15;
/** So long a stored wake is kept. Whoever does not look for that long has lost it, and comes to know by its own poll. */
const KEEP_MS = 10_000;
/** So many of the oldest wakes are looked at, for each new one, whether they may go: more than come in. */
const PURGE_FACTOR = 4;

interface Subscription {
  readonly inbox: string;
  readonly listener: (message: string, version: Version) => void;
  /** The number of the last wake it has seen. */
  seen: bigint;
}

/**
 * Delivers wakes: to an inbox of this engine directly, to all others through a table that their processes look at
 * whenever the database has changed.
 */
export class Wakes {
  readonly #transactions: Transactions;
  readonly #insert: StatementSync;
  readonly #purge: StatementSync;
  readonly #newer: StatementSync;
  readonly #clear: StatementSync;
  readonly #dataVersion: StatementSync;
  readonly #ticker: Ticker;
  readonly #subscriptions = new Map<string, Set<Subscription>>();
  #seenDataVersion: unknown;

  constructor(db: DatabaseSync, transactions: Transactions, clock: Clock) {
    this.#transactions = transactions;
    this.#insert = db.prepare(
      'INSERT INTO wake (seq, inbox, message, version, at_ms) VALUES (?, ?, ?, ?, ?)',
    );
    this.#purge = db.prepare('DELETE FROM wake WHERE seq < (SELECT min(seq) FROM wake) + ? AND at_ms <= ?');
    this.#newer = db.prepare(
      'SELECT seq, message, version FROM wake WHERE inbox = ? AND seq > ? ORDER BY seq',
    );
    this.#newer.setReadBigInts(true);
    this.#clear = db.prepare('DELETE FROM wake');
    this.#dataVersion = db.prepare('PRAGMA data_version');
    this.#ticker = new Ticker(clock, POLL_PERIOD_MS, () => this.#poll());
  }

  subscribe(inbox: string, listener: (message: string, version: Version) => void): () => void {
    const subscription: Subscription = {
      inbox,
      listener,
      seen: this.#lastSeq(),
    };
    const present = this.#subscriptions.get(inbox);
    if (present === undefined) this.#subscriptions.set(inbox, new Set([subscription]));
    else present.add(subscription);
    this.#ticker.start();
    return () => {
      const rest = this.#subscriptions.get(inbox);
      if (rest?.delete(subscription) && rest.size === 0) this.#subscriptions.delete(inbox);
      if (this.#subscriptions.size === 0) this.#ticker.stop();
    };
  }

  /** Sends wakes as part of a transaction. */
  send(transaction: Transaction, wakes: readonly Wake[], version: Version): void {
    let stored = 0;
    for (const wake of wakes) {
      if (this.#subscriptions.has(wake.inbox)) {
        transaction.wakes.push({ wake, version });
        continue;
      }
      transaction.wakeSeq += 1n;
      this.#insert.run(transaction.wakeSeq, wake.inbox, toBytes(wake.message), version, transaction.nowMs);
      stored += 1;
    }
    if (stored > 0) this.#purge.run(stored * PURGE_FACTOR, transaction.nowMs - KEEP_MS);
  }

  /** Delivers the wakes to inboxes of this engine that a transaction has sent. */
  committed({ wakes }: Transaction): void {
    for (const { wake, version } of wakes) {
      for (const subscription of this.#subscriptions.get(wake.inbox) ?? []) {
        this.#deliver(subscription, wake.message, version);
      }
    }
  }

  /** After a restart of the machine nobody is left who waited for a wake. */
  restart(): void {
    this.#clear.run();
  }

  close(): void {
    this.#subscriptions.clear();
    this.#ticker.stop();
  }

  #poll(): void {
    try {
      const dataVersion = this.#dataVersion.get()?.data_version;
      if (dataVersion === this.#seenDataVersion) return;
      for (const subscriptions of this.#subscriptions.values()) {
        for (const subscription of subscriptions) this.#deliverNewer(subscription);
      }
      this.#seenDataVersion = dataVersion;
    } catch {
      // The next look comes soon; whoever calls the engine is told what is wrong with it.
    }
  }

  #deliverNewer(subscription: Subscription): void {
    const rows = this.#newer.all(subscription.inbox, subscription.seen) as {
      seq: bigint;
      message: Uint8Array;
      version: bigint;
    }[];
    for (const { seq, message, version } of rows) {
      subscription.seen = seq;
      this.#deliver(subscription, toText(message), version);
    }
  }

  /** In a turn of its own, so that a listener that throws disturbs nobody here. */
  #deliver(subscription: Subscription, message: string, version: Version): void {
    queueMicrotask(() => {
      if (this.#subscriptions.get(subscription.inbox)?.has(subscription))
        subscription.listener(message, version);
    });
  }

  /** Where that cannot be read just now, a new subscription sees old wakes too, which does no harm. */
  #lastSeq(): bigint {
    try {
      return this.#transactions.wakeSeq();
    } catch {
      return 0n;
    }
  }
}
