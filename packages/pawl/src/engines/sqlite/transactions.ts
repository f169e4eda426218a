import type { StatementSync } from 'node:sqlite';
import { type Clock, turn } from '../../clock.ts';
import { ClosedError } from '../../errors.ts';
import type { Version, Wake } from '../engine.ts';
import type { Connection } from './connection.ts';
import { isBusy, storeError } from './failures.ts';
import type { Patience } from './patience.ts';

/** What a job sees of the transaction it runs in, and leaves behind for the end of it. */
export interface Transaction {
  /** Since boot, read after the lock was won: every decision of the transaction is made at this time. */
  readonly nowMs: number;
  /** The version of the last write. */
  version: Version;
  /** The number of the last wake that was stored. */
  wakeSeq: bigint;
  /** Sessions that were found to be alive, and were not ended since. */
  readonly alive: Set<string>;
  /** Sessions that this transaction ended. */
  readonly ended: string[];
  /** Wakes for inboxes of this very process. */
  readonly wakes: { readonly wake: Wake; readonly version: Version }[];
}

export interface TransactionsOptions {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly patience: Patience;
  /** Called first in a transaction that finds that the machine was restarted. */
  readonly onRestart: (nowMs: number) => void;
  /** Called first in a transaction before which others have written, and after one that was undone. */
  readonly onUnknown: () => void;
  /** Called after a transaction was committed. */
  readonly onCommitted: (transaction: Transaction) => void;
}

type Meta = {
  readonly version: Version;
  readonly wakeSeq: bigint;
  readonly bootId: string;
};

interface Job {
  run(transaction: Transaction): void;
  settle(): void;
  reject(error: unknown): void;
}

/**
 * Runs jobs in write transactions. All jobs that come in together, or while another process holds
 * the write lock, share one transaction and so one flush to the disk.
 */
export class Transactions {
  readonly #options: TransactionsOptions;
  readonly #meta: StatementSync;
  readonly #saveMeta: StatementSync;
  #jobs: Job[] = [];
  /** What the last transaction left behind, which holds as long as the data version is the same. */
  #last: { readonly meta: Meta; readonly dataVersion: unknown } | undefined;
  #running = false;
  #closed = false;

  constructor(options: TransactionsOptions) {
    const { db } = options.connection;
    this.#options = options;
    this.#meta = db.prepare('SELECT version, wake_seq AS wakeSeq, boot_id AS bootId FROM meta');
    this.#meta.setReadBigInts(true);
    this.#saveMeta = db.prepare('UPDATE meta SET version = ?, wake_seq = ?, boot_id = ?');
  }

  /** Runs `job` in a transaction with others. @returns what it returned, once that is on the disk. */
  submit<T>(job: (transaction: Transaction) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let settle = () => {};
      const run = (transaction: Transaction) => {
        const value = job(transaction);
        settle = () => resolve(value);
      };
      this.#jobs.push({ run, settle: () => settle(), reject });
      if (!this.#running) {
        this.#running = true;
        void this.#drain();
      }
    });
  }

  /** Whether the machine was restarted since the last transaction. */
  wasRestarted(): boolean {
    return this.#readMeta().bootId !== this.#options.clock.bootId();
  }

  /** The number of the last wake that was stored. */
  wakeSeq(): bigint {
    return this.#readMeta().wakeSeq;
  }

  /** Rejects what has not begun. */
  close(): void {
    this.#closed = true;
    for (const { reject } of this.#jobs.splice(0)) reject(new ClosedError('The SQLite engine'));
  }

  async #drain(): Promise<void> {
    const { connection, patience } = this.#options;
    while (this.#jobs.length > 0) {
      try {
        // All that comes in meanwhile goes to the disk together.
        await turn();
        connection.checkFile();
        await patience.untilFree(() => this.#transact());
      } catch (error) {
        // Nothing of these jobs has begun.
        for (const { reject } of this.#jobs.splice(0)) reject(error);
      }
    }
    this.#running = false;
  }

  /** Runs all jobs there are in one transaction. @throws only where no job was begun. */
  #transact(): void {
    if (this.#closed || this.#jobs.length === 0) return;
    const { connection, onCommitted } = this.#options;
    try {
      connection.beginWrite();
    } catch (error) {
      throw isBusy(error) ? error : storeError(error, connection.where, 'definite');
    }
    const jobs = this.#jobs.splice(0);
    let transaction: Transaction;
    try {
      transaction = this.#work(jobs);
    } catch (error) {
      this.#undo();
      for (const { reject } of jobs) reject(storeError(error, connection.where, 'definite'));
      return;
    }
    try {
      connection.commit();
    } catch (error) {
      this.#undo();
      // The log may have reached the disk although its flush failed; then the next process to open it finds it whole.
      for (const { reject } of jobs) reject(storeError(error, connection.where, 'indefinite'));
      return;
    }
    for (const { settle } of jobs) settle();
    onCommitted(transaction);
  }

  #work(jobs: readonly Job[]): Transaction {
    const { clock, onRestart } = this.#options;
    const { version, wakeSeq, bootId } = this.#begin();
    const transaction: Transaction = {
      nowMs: clock.sinceBootMs(),
      version,
      wakeSeq,
      alive: new Set(),
      ended: [],
      wakes: [],
    };
    const restarted = bootId !== clock.bootId();
    if (restarted) onRestart(transaction.nowMs);
    for (const { run } of jobs) run(transaction);
    if (restarted || transaction.version !== version || transaction.wakeSeq !== wakeSeq) {
      this.#saveMeta.run(transaction.version, transaction.wakeSeq, clock.bootId());
      const meta = { version: transaction.version, wakeSeq: transaction.wakeSeq, bootId: clock.bootId() };
      this.#last = { meta, dataVersion: this.#last?.dataVersion };
    }
    return transaction;
  }

  /** What stands in the database, which need not be read where nobody else has written since. */
  #begin(): Meta {
    const dataVersion = this.#options.connection.dataVersion();
    if (this.#last === undefined || this.#last.dataVersion !== dataVersion) {
      this.#options.onUnknown();
      this.#last = { meta: this.#readMeta(), dataVersion };
    }
    return this.#last.meta;
  }

  #undo(): void {
    this.#options.connection.undo();
    this.#last = undefined;
    this.#options.onUnknown();
  }

  #readMeta(): Meta {
    return this.#meta.get() as Meta;
  }
}
