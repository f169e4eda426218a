import { type Clock, systemClock } from '../../clock.ts';
import { ClosedError, InvalidArgumentError } from '../../errors.ts';
import { EndingsFeed } from '../endings-feed.ts';
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
import { OwnInboxes } from '../own-inboxes.ts';
import { checkVersionFloor } from '../version-floor.ts';
import { Database, type PostgresPool } from './database.ts';
import { findingsOf } from './findings.ts';
import { Inboxes } from './inboxes.ts';
import { outdatedSnapshots, prepareSchema, SEES_THE_LATEST } from './schema.ts';

export type { PostgresClient, PostgresPool } from './database.ts';

/** How often it is looked whether the time of a session is up, in ms. */
const SWEEP_PERIOD_MS = 100;

/** What the Postgres engine promises. */
export const postgresGuarantees: EngineGuarantees = {
  engine: 'postgres',
  survives: 'what the database survives, as it is run (fsync, synchronous_commit, its replicas)',
  expiryDecidedBy: "the database's clock",
  tokensRestOn: 'a row that is written in the same transaction',
  wakeUp: 'notifications',
  durable: true,
  mutualExclusion: 'yes',
  needsFencing: true,
  minTtlMs: 50,
  sweepMs: 150,
};

export interface PostgresEngineOptions {
  /** The user's own pool of `pg`, of two connections or more: one is kept to listen on. It stays open. */
  readonly pool: PostgresPool;
  /** The schema of the tables, made if it is not there; `pawl` unless set. Lower-case letters, digits and `_`, at most 40. */
  readonly schema?: string;
  readonly clock?: Clock;
}

/**
 * An engine in a Postgres database. Works through a pooler in transaction mode as well, where only the notifications are missing, and
 * waiters are found by the slow poll instead.
 *
 * @throws InvalidArgumentError, StoreVersionError, StoreUnusableError, EngineUnavailableError
 */
export async function postgresEngine(options: PostgresEngineOptions): Promise<Engine> {
  const { pool, schema = 'pawl', clock = systemClock } = options;
  if (typeof pool?.query !== 'function' || typeof pool.connect !== 'function') {
    throw new InvalidArgumentError('pool', 'a Pool of pg', pool);
  }
  if (!/^[a-z_][a-z0-9_]{0,39}$/.test(schema)) {
    throw new InvalidArgumentError(
      'schema',
      '1 to 40 lower-case letters, digits or "_", no digit first',
      schema,
    );
  }
  const database = new Database(pool, clock);
  await prepareSchema(database, schema);
  return new PostgresEngine(database, schema);
}

interface Row {
  readonly part: string;
  readonly key: Buffer;
  readonly value: Buffer;
  readonly version: string;
}

class PostgresEngine implements Engine {
  readonly guarantees = postgresGuarantees;
  readonly #database: Database;
  readonly #schema: string;
  readonly #inboxes: Inboxes;
  readonly #ownInboxes = new OwnInboxes();
  readonly #endings: EndingsFeed;
  #closed = false;

  constructor(database: Database, schema: string) {
    this.#database = database;
    this.#schema = schema;
    this.#inboxes = new Inboxes(database, schema);
    this.#endings = new EndingsFeed({
      clock: database.clock,
      periodMs: SWEEP_PERIOD_MS,
      look: () => this.#finish([]),
    });
  }

  /** One statement, so one snapshot: part 0 are the keys, part n the n-th range. */
  async read({ keys, ranges }: ReadQuery): Promise<ReadResult> {
    const bounds = ranges.map(({ prefix, limit }) => ({ ...boundsOf(prefix), limit }));
    const rows = await this.#query<Row>(
      `SELECT 0 AS part, key, value, version FROM ${this.#schema}.entry WHERE key = ANY ($1::bytea[])
       UNION ALL
       SELECT r.part, e.key, e.value, e.version
       FROM unnest($2::bytea[], $3::bytea[], $4::int[]) WITH ORDINALITY AS r (lower, upper, wanted, part)
       CROSS JOIN LATERAL (
         SELECT key, value, version FROM ${this.#schema}.entry
         WHERE key >= r.lower AND key < r.upper ORDER BY key LIMIT r.wanted
       ) AS e`,
      [
        keys.map((key) => Buffer.from(key)),
        bounds.map(({ lower }) => lower),
        bounds.map(({ upper }) => upper),
        bounds.map(({ limit }) => limit),
      ],
    );
    const parts = Map.groupBy(rows, ({ part }) => Number(part));
    const entries = new Map((parts.get(0) ?? []).map(toEntry).map((entry) => [entry.key, entry]));
    return { entries, ranges: ranges.map((_, i) => (parts.get(i + 1) ?? []).map(toEntry).sort(byKey)) };
  }

  async list(prefix: string, limit: number, after?: string): Promise<readonly Entry[]> {
    const { lower, upper } = boundsOf(prefix);
    const rows = await this.#query<Row>(
      `SELECT key, value, version FROM ${this.#schema}.entry
       WHERE key >= $1 AND key < $2 AND key > $3 ORDER BY key LIMIT $4`,
      // Without a key to go on after, one that is below all others: nothing is stored under no name.
      [lower, upper, Buffer.from(after ?? ''), limit],
    );
    return rows.map(toEntry);
  }

  commit(batch: readonly ConditionalWrite[]): Promise<readonly CommitResult[]> {
    return this.#ownInboxes.commit(batch, (rest) => this.#commit(rest));
  }

  async #commit(batch: readonly ConditionalWrite[]): Promise<readonly CommitResult[]> {
    const writes = batch.map(({ guards, alive, puts, deletes, wakes }) => ({
      g: guards.map(({ key, version }) => [toBase64(key), version?.toString() ?? null]),
      a: alive,
      p: puts.map(({ key, value }) => [toBase64(key), toBase64(value)]),
      d: deletes.map(toBase64),
      w: wakes.map(({ inbox, message }) => [this.#inboxes.channelOf(inbox), message]),
    }));
    const [row] = await this.#query<{ answers: string[][] }>(
      `SELECT ${this.#schema}.commit($1::jsonb) AS answers WHERE ${SEES_THE_LATEST}`,
      [JSON.stringify(writes)],
    );
    if (row === undefined) throw outdatedSnapshots(this.#schema);
    return row.answers.map(([kind, ...rest]): CommitResult => {
      if (kind === 'committed') return { kind, version: BigInt(rest[0] ?? 0) };
      if (kind === 'ended') return { kind: 'sessionsEnded', sessions: rest };
      return { kind: 'conflict', keys: rest.map((key) => Buffer.from(key, 'base64').toString()) };
    });
  }

  async openSession(id: string, ttlMs: number): Promise<boolean> {
    const rows = await this.#query(
      `INSERT INTO ${this.#schema}.session AS s VALUES ($1, $2::bigint, clock_timestamp() + $2::bigint * interval '1 ms')
       ON CONFLICT (id) DO UPDATE SET ttl_ms = excluded.ttl_ms, expires_at = excluded.expires_at
       WHERE s.expires_at > clock_timestamp() RETURNING id`,
      [id, ttlMs],
    );
    return rows.length > 0;
  }

  async keepAlive(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.#query<{ id: string }>(
      `UPDATE ${this.#schema}.session SET expires_at = clock_timestamp() + ttl_ms * interval '1 ms'
       WHERE id = ANY ($1) AND expires_at > clock_timestamp() RETURNING id`,
      [ids],
    );
    return new Set(rows.map(({ id }) => id));
  }

  async endSession(id: string): Promise<void> {
    await this.#finish([id]);
  }

  watchEndings(listener: (ids: readonly string[]) => void): () => void {
    this.#checkOpen();
    return this.#endings.watch(listener);
  }

  async forgetSessions(ids: readonly string[]): Promise<void> {
    await this.#query(`DELETE FROM ${this.#schema}.session WHERE id = ANY ($1) AND expires_at IS NULL`, [
      ids,
    ]);
  }

  subscribe(inbox: string, listener: (message: string, version: Version) => void): () => void {
    this.#checkOpen();
    return this.#ownInboxes.subscribe(inbox, listener, this.#inboxes.subscribe(inbox, listener));
  }

  async raiseVersion(version: Version): Promise<Version> {
    checkVersionFloor(version);
    const [row] = await this.#query<{ version: string }>(
      `WITH before AS (SELECT version FROM ${this.#schema}.meta WHERE id = 1 FOR UPDATE)
       UPDATE ${this.#schema}.meta m SET version = greatest(m.version, $1::bigint) FROM before
       WHERE m.id = 1 RETURNING before.version`,
      [version.toString()],
    );
    return BigInt(row?.version ?? 0);
  }

  async check(): Promise<readonly Finding[]> {
    const rows = await this.#query<{ name: string; setting: string }>(
      `SELECT name, setting FROM pg_settings
       WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names', 'server_version')`,
      [],
    );
    return findingsOf(new Map(rows.map(({ name, setting }) => [name, setting])));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#endings.close();
    this.#ownInboxes.close();
    this.#inboxes.close();
  }

  async #finish(ids: readonly string[]): Promise<readonly string[]> {
    const rows = await this.#query<{ id: string }>(`SELECT ${this.#schema}.finish($1) AS id`, [ids]);
    return rows.map(({ id }) => id);
  }

  async #query<R>(text: string, values: unknown[]): Promise<R[]> {
    this.#checkOpen();
    // What comes after a subscription must find it in force.
    await this.#database.until(this.#inboxes.ready);
    return this.#database.query<R>(text, values);
  }

  #checkOpen(): void {
    if (this.#closed) throw new ClosedError('The Postgres engine');
  }
}

/** All keys that start with `prefix`: no byte of UTF-8 is 0xff. */
function boundsOf(prefix: string): { lower: Buffer; upper: Buffer } {
  const lower = Buffer.from(prefix);
  return { lower, upper: Buffer.concat([lower, Uint8Array.of(0xff)]) };
}

function toBase64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function toEntry({ key, value, version }: Pick<Row, 'key' | 'value' | 'version'>): Entry {
  return { key: key.toString(), value: value.toString(), version: BigInt(version) };
}

function byKey(a: Entry, b: Entry): number {
  return Buffer.compare(Buffer.from(a.key), Buffer.from(b.key));
}
