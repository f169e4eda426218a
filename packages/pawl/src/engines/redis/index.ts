import { randomBytes } from 'node:crypto';
import { type Clock, systemClock } from '../../clock.ts';
import { ClosedError, InvalidArgumentError, StoreCorruptError, StoreVersionError } from '../../errors.ts';
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
import { type RedisConnection, ScriptRunner } from './client.ts';
import { toEntries, toEntry } from './entries.ts';
import { redisFindings } from './findings.ts';
import { Inboxes } from './inboxes.ts';
import { fromNodeRedis, isNodeRedis, type NodeRedisClient } from './node-redis.ts';
import {
  COMMIT,
  END,
  FORGET,
  FORMAT,
  KEEP_ALIVE,
  KEYS,
  OPEN,
  PREPARE,
  RAISE,
  READ,
  SWEEP,
} from './scripts.ts';

export type { RedisConnection, RedisSubscriber } from './client.ts';
export type { NodeRedisClient } from './node-redis.ts';

/** How often it is looked whether the time of a session is up, in ms. */
const SWEEP_PERIOD_MS = 100;

/** What the Redis engine promises. */
export const redisGuarantees: EngineGuarantees = {
  engine: 'redis',
  survives:
    'only what its persistence keeps: nothing without, up to a second of grants with appendfsync everysec',
  expiryDecidedBy: "Redis' clock",
  tokensRestOn: 'a counter that is raised in the same script',
  wakeUp: 'publish and subscribe',
  durable: false,
  mutualExclusion: 'yes',
  needsFencing: true,
  minTtlMs: 50,
  sweepMs: 150,
};

export interface RedisEngineOptions {
  /**
   * The user's own connection: ioredis' `new Redis(…)` or `new Cluster(…)`, or node-redis' `createClient(…)`, connected. It stays open;
   * the engine opens one more to listen on.
   */
  readonly client: RedisConnection | NodeRedisClient;
  /** The beginning of all keys, `pawl` unless set; 1 to 64 letters, digits, `_`, `-`, `.` or `:`. */
  readonly prefix?: string;
  readonly clock?: Clock;
}

/**
 * An engine on one Redis (or one slot of a cluster). Grants last as long as Redis' persistence keeps them: after a crash without
 * it all locks are forgotten and tokens begin anew, which fences notice and refuse.
 *
 * @throws InvalidArgumentError
 */
export function redisEngine(options: RedisEngineOptions): Engine {
  const { prefix = 'pawl', clock = systemClock } = options;
  const client = isNodeRedis(options.client) ? fromNodeRedis(options.client) : options.client;
  if (typeof client?.call !== 'function' || typeof client.duplicate !== 'function') {
    throw new InvalidArgumentError('client', 'a connection of ioredis or of node-redis', client);
  }
  if (!/^[\w.:-]{1,64}$/.test(prefix)) {
    throw new InvalidArgumentError('prefix', '1 to 64 letters, digits, "_", "-", "." or ":"', prefix);
  }
  return new RedisEngine(client, `{${prefix}}`, clock);
}

class RedisEngine implements Engine {
  readonly guarantees = redisGuarantees;
  readonly #scripts: ScriptRunner;
  readonly #inboxes: Inboxes;
  readonly #ownInboxes = new OwnInboxes();
  readonly #endings: EndingsFeed;
  readonly #channels: string;
  readonly #client: RedisConnection;
  #prepared: Promise<void> | undefined;
  #commits = 0;
  #closed = false;

  constructor(client: RedisConnection, tag: string, clock: Clock) {
    this.#client = client;
    this.#scripts = new ScriptRunner(
      client,
      clock,
      [...KEYS, `answers:${randomBytes(12).toString('hex')}`].map((key) => `${tag}:${key}`),
    );
    this.#channels = `${tag}:inbox:`;
    this.#inboxes = new Inboxes(client, this.#channels);
    this.#endings = new EndingsFeed({
      clock,
      periodMs: SWEEP_PERIOD_MS,
      look: async () => (await this.#run(SWEEP, [])) as string[],
    });
  }

  async read({ keys, ranges }: ReadQuery): Promise<ReadResult> {
    const r = ranges.map(({ prefix, limit }) => [`[${prefix}`, `[${prefix}\u{10FFFF}`, limit]);
    const [values = [], ...lists] = (await this.#run(READ, [JSON.stringify({ k: keys, r })])) as (
      | string
      | null
    )[][];
    const entries = new Map<string, Entry>();
    for (const [i, key] of keys.entries()) {
      const stored = values[i];
      if (typeof stored === 'string') entries.set(key, toEntry(key, stored));
    }
    return { entries, ranges: ranges.map((_, i) => toEntries(lists[i] ?? [])) };
  }

  async list(prefix: string, limit: number, after?: string): Promise<readonly Entry[]> {
    const beyond = after !== undefined && Buffer.compare(Buffer.from(after), Buffer.from(prefix)) >= 0;
    const range = [beyond ? `(${after}` : `[${prefix}`, `[${prefix}\u{10FFFF}`, limit];
    const [, list] = (await this.#run(READ, [JSON.stringify({ k: [], r: [range] })])) as (string | null)[][];
    return toEntries(list ?? []);
  }

  async commit(batch: readonly ConditionalWrite[]): Promise<readonly CommitResult[]> {
    if (batch.length === 0) return [];
    return this.#ownInboxes.commit(batch, (rest) => this.#commit(rest));
  }

  async #commit(batch: readonly ConditionalWrite[]): Promise<readonly CommitResult[]> {
    const writes = batch.map(({ guards, alive, puts, deletes, wakes }) => ({
      g: guards.map(({ key, version }) => [key, version?.toString() ?? '']),
      a: alive,
      p: puts.map(({ key, value }) => [key, value]),
      d: deletes,
      w: wakes.map(({ inbox, message }) => [inbox, message]),
    }));
    this.#commits += 1;
    const args = [this.#channels, JSON.stringify(writes), this.#commits];
    const answers = (await this.#run(COMMIT, args)) as string[][];
    return answers.map(([kind, ...rest]): CommitResult => {
      if (kind === 'committed') return { kind, version: BigInt(rest[0] ?? 0) };
      return kind === 'ended' ? { kind: 'sessionsEnded', sessions: rest } : { kind: 'conflict', keys: rest };
    });
  }

  async openSession(id: string, ttlMs: number): Promise<boolean> {
    return (await this.#run(OPEN, [id, ttlMs])) === 1;
  }

  async keepAlive(ids: readonly string[]): Promise<ReadonlySet<string>> {
    return new Set((await this.#run(KEEP_ALIVE, ids)) as string[]);
  }

  async endSession(id: string): Promise<void> {
    await this.#run(END, [id]);
  }

  watchEndings(listener: (ids: readonly string[]) => void): () => void {
    this.#checkOpen();
    return this.#endings.watch(listener);
  }

  async forgetSessions(ids: readonly string[]): Promise<void> {
    await this.#run(FORGET, ids);
  }

  subscribe(inbox: string, listener: (message: string, version: Version) => void): () => void {
    this.#checkOpen();
    return this.#ownInboxes.subscribe(inbox, listener, this.#inboxes.subscribe(inbox, listener));
  }

  async raiseVersion(version: Version): Promise<Version> {
    checkVersionFloor(version);
    return BigInt((await this.#run(RAISE, [version.toString()])) as string);
  }

  async check(): Promise<readonly Finding[]> {
    this.#checkOpen();
    return redisFindings(this.#client);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#endings.close();
    this.#ownInboxes.close();
    this.#inboxes.close();
  }

  async #run(script: string, args: readonly (string | number)[]): Promise<unknown> {
    this.#checkOpen();
    await this.#prepare();
    // What comes after a subscription must find it in force.
    await this.#scripts.until(this.#inboxes.ready);
    return this.#scripts.run(script, args);
  }

  /** Looks at the layout once, at the first use. @throws StoreVersionError, StoreCorruptError */
  #prepare(): Promise<void> {
    this.#prepared ??= this.#checkFormat().catch((error) => {
      this.#prepared = undefined;
      throw error;
    });
    return this.#prepared;
  }

  async #checkFormat(): Promise<void> {
    const found = String(await this.#scripts.run(PREPARE, [FORMAT]));
    const where = 'What lies in Redis under this prefix';
    if (!/^[1-9]\d{0,8}$/.test(found)) throw new StoreCorruptError(where, `its format number is "${found}"`);
    if (Number(found) > FORMAT) throw new StoreVersionError(where, Number(found), FORMAT);
  }

  #checkOpen(): void {
    if (this.#closed) throw new ClosedError('The Redis engine');
  }
}
