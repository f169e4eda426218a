import type { Clock } from '../../clock.ts';
import { ClosedError } from '../../errors.ts';
import type {
  CommitResult,
  ConditionalWrite,
  Engine,
  EngineGuarantees,
  Entry,
  Finding,
  ReadQuery,
  ReadResult,
  Version,
} from '../engine.ts';
import { checkVersionFloor } from '../version-floor.ts';
import { commitOne, type Tables } from './commit.ts';
import type { Connection } from './connection.ts';
import { Endings } from './endings.ts';
import { Entries } from './entries.ts';
import type { Patience } from './patience.ts';
import { Sessions } from './sessions.ts';
import { Snapshots } from './snapshots.ts';
import { Transactions } from './transactions.ts';
import { Wakes } from './wakes.ts';

/** What the SQLite engine promises. */
export const sqliteGuarantees: EngineGuarantees = {
  engine: 'sqlite',
  survives: 'the end of any process, and power loss of the machine as far as its disk keeps what was flushed',
  expiryDecidedBy:
    "the machine's time since boot, sleep included; a restart of the machine gives every session its whole TTL again",
  tokensRestOn: 'a row that is written in the same transaction',
  wakeUp: 'direct within a process; other processes on the same file look every 15 ms',
  durable: true,
  mutualExclusion: 'yes',
  needsFencing: true,
  minTtlMs: 50,
  sweepMs: 150,
};

/** An engine over a database that is open and has its tables. */
export class SqliteEngine implements Engine {
  readonly guarantees = sqliteGuarantees;
  readonly #connection: Connection;
  readonly #snapshots: Snapshots;
  readonly #tables: Tables;
  readonly #transactions: Transactions;
  readonly #endings: Endings;
  #closed = false;

  constructor(connection: Connection, clock: Clock, patience: Patience) {
    const { db } = connection;
    const entries = new Entries(db);
    const sessions = new Sessions(db);
    this.#connection = connection;
    this.#snapshots = new Snapshots({ connection, patience, checkOpen: () => this.#checkOpen() });
    this.#transactions = new Transactions({
      connection,
      clock,
      patience,
      onRestart: (nowMs) => {
        sessions.restart(nowMs);
        wakes.restart();
      },
      onUnknown: () => {
        entries.forget();
        sessions.doubt();
      },
      onCommitted: (transaction) => {
        wakes.committed(transaction);
        this.#endings.committed(transaction);
      },
    });
    const wakes = new Wakes(db, this.#transactions, clock);
    this.#tables = { entries, sessions, wakes };
    this.#endings = new Endings(sessions, this.#transactions, clock);
  }

  /** Starts the sessions' TTLs anew if the machine was restarted since the database was last written. */
  async noticeRestart(): Promise<void> {
    if (await this.#snapshot(() => this.#transactions.wasRestarted()))
      await this.#transactions.submit(() => {});
  }

  read(query: ReadQuery): Promise<ReadResult> {
    return this.#snapshot(() => this.#tables.entries.read(query));
  }

  list(prefix: string, limit: number, after?: string): Promise<readonly Entry[]> {
    return this.#snapshot(() => this.#tables.entries.list(prefix, limit, after));
  }

  async commit(batch: readonly ConditionalWrite[]): Promise<readonly CommitResult[]> {
    this.#checkOpen();
    return this.#transactions.submit((transaction) =>
      batch.map((write) => commitOne(this.#tables, transaction, write, this.#connection.where)),
    );
  }

  async openSession(id: string, ttlMs: number): Promise<boolean> {
    this.#checkOpen();
    return this.#transactions.submit((transaction) => this.#tables.sessions.open(transaction, id, ttlMs));
  }

  async keepAlive(ids: readonly string[]): Promise<ReadonlySet<string>> {
    this.#checkOpen();
    return this.#transactions.submit((transaction) => this.#tables.sessions.keepAlive(transaction, ids));
  }

  async endSession(id: string): Promise<void> {
    this.#checkOpen();
    await this.#transactions.submit((transaction) => this.#tables.sessions.end(transaction, id));
  }

  watchEndings(listener: (ids: readonly string[]) => void): () => void {
    this.#checkOpen();
    return this.#endings.watch(listener);
  }

  async forgetSessions(ids: readonly string[]): Promise<void> {
    this.#checkOpen();
    await this.#transactions.submit(() => this.#tables.sessions.forget(ids));
  }

  subscribe(inbox: string, listener: (message: string, version: Version) => void): () => void {
    this.#checkOpen();
    return this.#tables.wakes.subscribe(inbox, listener);
  }

  async raiseVersion(version: Version): Promise<Version> {
    this.#checkOpen();
    checkVersionFloor(version);
    return this.#transactions.submit((transaction) => {
      const before = transaction.version;
      if (version > before) transaction.version = version;
      return before;
    });
  }

  /** What the engine itself sets is as it should be; what the disk does with a flush cannot be asked. */
  check(): Promise<readonly Finding[]> {
    return this.#snapshot(() => {
      const { db } = this.#connection;
      const journal = String(db.prepare('PRAGMA journal_mode').get()?.journal_mode);
      const synchronous = Number(db.prepare('PRAGMA synchronous').get()?.synchronous);
      return [
        {
          setting: `journal_mode ${journal}`,
          warning:
            journal === 'wal' ? null : 'another program changed it; readers and writers block each other',
        },
        {
          setting: `synchronous ${synchronous}`,
          warning: synchronous >= 2 ? null : 'a power loss can take back grants',
        },
      ];
    });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#transactions.close();
    this.#endings.close();
    this.#tables.wakes.close();
    this.#connection.db.close();
  }

  async #snapshot<T>(look: () => T): Promise<T> {
    this.#checkOpen();
    return this.#snapshots.take(look);
  }

  #checkOpen(): void {
    if (this.#closed) throw new ClosedError('The SQLite engine');
  }
}
