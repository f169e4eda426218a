import type { Command, News, Outcome, OutcomeOf, RequestId } from '../../src/core/commands.ts';
import { namesOf, requestsOf } from '../../src/core/commands.ts';
import { type Decision, decide } from '../../src/core/decide.ts';
import type { Loaded } from '../../src/core/draft.ts';
import { lockKey, requestKey, requestOfKey, requestPrefix, waitPrefix } from '../../src/core/names.ts';
import { decodeNews } from '../../src/core/news.ts';
import {
  decodeLock,
  decodeRequest,
  decodeWaiter,
  type LockRecord,
  type Waiter,
} from '../../src/core/records.ts';
import type { ConditionalWrite } from '../../src/core/write.ts';
import { MemoryStore } from '../../src/engines/memory/index.ts';

export interface WorldOptions {
  /** How many first waiters a load sees; small, so that long queues are only partly seen. */
  readonly headWindow?: number;
  readonly maxWaiters?: number;
  /** Spoils writes on their way to the store: for showing that the checks can fail. */
  readonly spoil?: (write: ConditionalWrite) => ConditionalWrite;
}

/** A store and the news that commits send, without nodes or clients: what the core is decided against. */
export class World {
  readonly store = new MemoryStore();
  /** News in the order they were sent. */
  readonly news: News[] = [];
  nowMs = 0;
  /** How many commands were decided, those that met a conflict again. */
  decided = 0;
  readonly #options: WorldOptions;
  readonly #ended = new Set<string>();
  /** The records of waiters as they were read last. */
  readonly #waiters = new Map<string, { readonly value: string; readonly waiter: Waiter }>();

  constructor(options: WorldOptions = {}) {
    this.#options = options;
    this.store.subscribe('inbox', (message, version) => {
      const news = decodeNews(message, version);
      if (news !== undefined) this.news.push(news);
    });
  }

  openSession(id: string, ttlMs: number): void {
    this.store.openSession(id, ttlMs, this.nowMs);
  }

  isAlive(session: string): boolean {
    const probe = { guards: [], alive: [session], puts: [], deletes: [], wakes: [] };
    return this.store.commit(probe, this.nowMs).kind === 'committed';
  }

  /** Decides one command and commits it. @param meanwhile runs between load and commit, as another node might. */
  run<C extends Command>(command: C, meanwhile?: () => void): OutcomeOf<C> {
    const [outcome] = this.runAll([command], meanwhile);
    return outcome as OutcomeOf<C>;
  }

  /** Decides commands together, as one batch of a node, until their write meets no conflict. */
  runAll(commands: readonly Command[], meanwhile?: () => void): readonly Outcome[] {
    const extra = new Set<string>();
    let interference = meanwhile;
    for (;;) {
      const loaded = this.load(commands, extra);
      this.decided += commands.length;
      const decision = decide(loaded, commands, {
        ended: this.#ended,
        maxWaiters: this.#options.maxWaiters ?? 1000,
      });
      for (const name of decision.missing) extra.add(name);
      if (decision.missing.length > 0) continue;
      interference?.();
      interference = undefined;
      const version = this.#commit(decision);
      if (version === undefined) continue;
      for (const session of decision.inTheWay) this.bury(session);
      for (const name of decision.unfinished) this.run({ kind: 'promote', name });
      return decision.outcomes.map((outcome) => withTokens(outcome, version));
    }
  }

  load(commands: readonly Command[], extra: ReadonlySet<string> = new Set()): Loaded {
    const names = new Set([...commands.flatMap(namesOf), ...extra]);
    const locks = [...names].map((name) => {
      const entry = this.store.read({ keys: [lockKey(name)], ranges: [] }).entries.get(lockKey(name));
      const head = this.queue(name, this.#options.headWindow ?? 16);
      const record = entry === undefined ? null : decodeLock(entry.key, entry.value, entry.version);
      return [name, { version: entry?.version ?? null, record, head }] as const;
    });
    const keys = commands.flatMap(requestsOf).map((id) => requestKey(id.session, id.request));
    const requests = keys.map((key) => {
      const entry = this.store.read({ keys: [key], ranges: [] }).entries.get(key);
      const record = entry === undefined ? null : decodeRequest(key, entry.value);
      return [key, { version: entry?.version ?? null, record }] as const;
    });
    return { locks: new Map(locks), requests: new Map(requests) };
  }

  /** Cleans up after a session, as an undertaker does; a lock-delay is a ghost's session of that length. */
  bury(session: string): void {
    this.#ended.add(session);
    for (const { key, value } of this.store.list(requestPrefix(session), 10_000)) {
      const { locks, state, lockDelayMs } = decodeRequest(key, value);
      let ghost: string | null = null;
      if (state === 'held' && lockDelayMs > 0) {
        ghost = `ghost-${session}-${requestOfKey(key)}`;
        this.openSession(ghost, lockDelayMs);
      }
      const names = locks.map((lock) => lock.name);
      this.run({ kind: 'bury', session, request: requestOfKey(key), names, ghost });
    }
  }

  lock(name: string): LockRecord | undefined {
    const entry = this.store.read({ keys: [lockKey(name)], ranges: [] }).entries.get(lockKey(name));
    return entry === undefined ? undefined : decodeLock(entry.key, entry.value, entry.version);
  }

  queue(name: string, limit = 100_000): Waiter[] {
    return this.store.list(waitPrefix(name), limit).map(({ key, value }) => this.#waiter(key, value));
  }

  request(id: RequestId) {
    const key = requestKey(id.session, id.request);
    const entry = this.store.read({ keys: [key], ranges: [] }).entries.get(key);
    return entry === undefined ? undefined : decodeRequest(key, entry.value);
  }

  /** Queues are read at every step, and hardly any waiter in them is new. */
  #waiter(key: string, value: string): Waiter {
    const known = this.#waiters.get(key);
    if (known?.value === value) return known.waiter;
    const waiter = decodeWaiter(key, value);
    this.#waiters.set(key, { value, waiter });
    return waiter;
  }

  /** @returns the version, or `undefined` on a conflict or an ended session. */
  #commit({ write }: Decision): bigint | undefined {
    if (write === null) return 0n;
    const result = this.store.commit(this.#options.spoil?.(write) ?? write, this.nowMs);
    if (result.kind === 'committed') return result.version;
    if (result.kind === 'sessionsEnded') for (const session of result.sessions) this.#ended.add(session);
    return undefined;
  }
}

function withTokens(outcome: Outcome, version: bigint): Outcome {
  if (outcome.kind !== 'granted' && outcome.kind !== 'transferred') return outcome;
  return { ...outcome, grants: outcome.grants.map((grant) => ({ ...grant, token: grant.token ?? version })) };
}
