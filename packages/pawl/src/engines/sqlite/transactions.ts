import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Clock } from '../../clock.ts';
import { ClosedError } from '../../errors.ts';
import type { Version, Wake } from '../engine.ts';
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
  /** Sessions that this transaction ended. */
  readonly ended: string[];
  /** Wakes for inboxes of this very process. */
  readonly wakes: { readonly wake: Wake; readonly version: Version }[];
}

export interface TransactionsOptions {
  readonly db: DatabaseSync;
  readonly where: string;
  readonly clock: Clock;
  readonly patience: Patience;
  /** Called first in a transaction that finds that the machine was restarted. */
  readonly onRestart: (nowMs: number) => void;
  /** Called after a transaction was committed. */
  readonly onCommitted: (transaction: Transaction) => void;
  /** @throws where the file at the path is no longer the one that was opened. */
  readonly checkFile: () => void;
}

interface Job {
  run(transaction: Transaction): void;
  settle(): void;
  reject(error: unknown): void;
}

/**
 * Runs jobs in write transactions. All jobs that are submitted in one turn of the event loop, or while another
 * process holds the write lock, share one transaction and so one flush to the disk.
 */
export class Transactions {
  readonly #options: TransactionsOptions;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #rollback: StatementSync;
  readonly #meta: StatementSync;
  readonly #saveMeta: StatementSync;
  #jobs: Job[] = [];
  #running = false;
  #closed = false;

  constructor(options: TransactionsOptions) {
    const { db } = options;
    this.#options = options;
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
    this.#rollback = db.prepare('ROLLBACK');
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
        // After the I/O of this turn, so that all that came in together goes to the disk together.
        setImmediate(() => void this.#drain());
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
    try {
      await this.#options.patience.untilFree(() => this.#transact());
    } catch (error) {
      // Nothing of these jobs has begun: the lock was not to be had.
      for (const { reject } of this.#jobs.splice(0)) reject(error);
    }
    if (this.#jobs.length > 0) setImmediate(() => void this.#drain());
    else this.#running = false;
  }

  /** Runs all jobs there are in one transaction. @throws only where no job was begun. */
  #transact(): void {
    if (this.#closed || this.#jobs.length === 0) return;
    const { where, checkFile, onCommitted } = this.#options;
    try {
      checkFile();
      this.#begin.run();
    } catch (error) {
      throw isBusy(error) ? error : storeError(error, where, 'definite');
    }
    const jobs = this.#jobs.splice(0);
    let transaction: Transaction;
    try {
      transaction = this.#work(jobs);
    } catch (error) {
      this.#undo();
      for (const { reject } of jobs) reject(storeError(error, where, 'definite'));
      return;
    }
    try {
      this.#commit.run();
    } catch (error) {
      this.#undo();
      // The log may have reached the disk although its flush failed; then the next process to open it finds it whole.
      for (const { reject } of jobs) reject(storeError(error, where, 'indefinite'));
      return;
    }
    for (const { settle } of jobs) settle();
    onCommitted(transaction);
  }

  #work(jobs: readonly Job[]): Transaction {
    const { clock, onRestart } = this.#options;
    const { version, wakeSeq, bootId } = this.#readMeta();
    const transaction: Transaction = {
      nowMs: clock.sinceBootMs(),
      version,
      wakeSeq,
      ended: [],
      wakes: [],
    };
    const restarted = bootId !== clock.bootId();
    if (restarted) onRestart(transaction.nowMs);
    for (const { run } of jobs) run(transaction);
    if (restarted || transaction.version !== version || transaction.wakeSeq !== wakeSeq) {
      this.#saveMeta.run(transaction.version, transaction.wakeSeq, clock.bootId());
    }
    return transaction;
  }

  #readMeta(): { version: bigint; wakeSeq: bigint; bootId: string } {
    return this.#meta.get() as {
      version: bigint;
      wakeSeq: bigint;
      bootId: string;
    };
  }

  /** SQLite itself has already undone the transaction after some errors; then there is nothing left to undo. */
  #undo(): void {
    try {
      this.#rollback.run();
    } catch {}
  }
}
