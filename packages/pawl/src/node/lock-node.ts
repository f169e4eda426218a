import type { Clock } from '../clock.ts';
import { systemClock } from '../clock.ts';
import type {
  AcquireCommand,
  AcquireOutcome,
  AskedLock,
  BreakOutcome,
  CancelOutcome,
  Grant,
  KeyedRequest,
  ReleaseOutcome,
  RequestId,
} from '../core/commands.ts';
import { requestKey } from '../core/names.ts';
import { decodeNews } from '../core/news.ts';
import { decodeRequest, type Owner, type Version } from '../core/records.ts';
import type { Engine, EngineGuarantees } from '../engines/engine.ts';
import { SessionEndedError } from '../errors.ts';
import type { Token } from '../token.ts';
import { Committer, type Decided } from './committer.ts';
import { findHolder, inspectLock, listLocks, positionOf } from './inspection.ts';
import type {
  AcquireAnswer,
  AcquireOptions,
  BreakTarget,
  GrantedLock,
  Hold,
  KeepAliveAnswer,
  LockService,
  LockState,
  SessionEvent,
  SignGrant,
  TransferAnswer,
} from './service.ts';
import { newSessionId, Undertaker } from './undertaker.ts';
import { WaitingRoom } from './waiting-room.ts';

export interface LockNodeOptions {
  readonly clock?: Clock;
  /** The most that may queue for one lock; the next is answered with `QueueFullError`. */
  readonly maxWaiters?: number;
  /** How often to look for lost news, in ms. */
  readonly pollMs?: number;
  /** Signs every grant. */
  readonly sign?: SignGrant | undefined;
}

/** Runs the core over an engine: batches commands, retries conflicts, wakes waiters, buries ended sessions. */
export class LockNode implements LockService {
  readonly guarantees: EngineGuarantees;
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #sign: SignGrant | undefined;
  readonly #inbox = newSessionId();
  readonly #committer: Committer;
  readonly #undertaker: Undertaker;
  readonly #waitingRoom: WaitingRoom;
  readonly #listeners = new Map<string, (event: SessionEvent) => void>();
  readonly #stops: (() => void)[];

  /**
   * @param engine stays the caller's: `close` does not close it.
   * @param options `maxWaiters` from 1 (100,000 unless set), `pollMs` from 1 (500 unless set).
   */
  constructor(engine: Engine, options: LockNodeOptions = {}) {
    const { clock = systemClock, maxWaiters = 100_000, pollMs = 500, sign } = options;
    this.#sign = sign;
    this.guarantees = engine.guarantees;
    this.#engine = engine;
    this.#clock = clock;
    const onEnded = (sessions: readonly string[]) => this.#onEnded(sessions);
    this.#committer = new Committer({ engine, clock, maxWaiters, onEnded });
    this.#undertaker = new Undertaker(engine, this.#committer);
    this.#waitingRoom = new WaitingRoom({
      engine,
      clock,
      pollMs,
      onClaim: (waiter) => this.#claim(waiter),
      onGranted: (to, grants) => this.#granted(to, grants, 0n),
      onBroken: (waiter) => this.#brokenUnheard(waiter),
    });
    this.#stops = [
      engine.subscribe(this.#inbox, (message, version) => this.#onNews(message, version)),
      engine.watchEndings(onEnded),
    ];
  }

  async openSession(ttlMs: number): Promise<string> {
    const session = newSessionId();
    if (!(await this.#engine.openSession(session, ttlMs)))
      throw new SessionEndedError('it ended as it was opened');
    return session;
  }

  async keepAlive(session: string, holds: readonly Hold[]): Promise<KeepAliveAnswer> {
    const alive = (await this.#engine.keepAlive([session])).has(session);
    if (!alive || holds.length === 0) return { alive, gone: holds };
    const keys = [...new Set(holds.map(({ request }) => requestKey(session, request)))];
    const { entries } = await this.#engine.read({ keys, ranges: [] });
    const held = new Set<string>();
    for (const [key, entry] of entries) {
      const record = decodeRequest(key, entry.value);
      if (record.state === 'held') for (const { name } of record.locks) held.add(`${key} ${name}`);
    }
    return {
      alive,
      gone: holds.filter(({ request, name }) => !held.has(`${requestKey(session, request)} ${name}`)),
    };
  }

  async closeSession(session: string): Promise<void> {
    this.#waitingRoom.removeSession(session);
    await this.#undertaker.clear(session);
    await this.#engine.endSession(session);
    await this.#undertaker.bury(session);
  }

  acquire(id: RequestId, locks: readonly AskedLock[], options: AcquireOptions): Promise<AcquireAnswer> {
    const keyed = withKey(id);
    const { wait, owner, lockDelayMs, barging } = options;
    const inbox = this.#inbox;
    const command = { kind: 'acquire', ...keyed, locks, wait, owner, inbox, lockDelayMs, barging } as const;
    if (wait) this.#waitingRoom.add(command);
    const decided = ({ outcome, version }: Decided<AcquireOutcome>): AcquireAnswer => {
      if (outcome.kind !== 'queued') this.#waitingRoom.remove(command);
      return outcome.kind === 'granted'
        ? { kind: 'granted', grants: this.#withTokens(outcome.grants, version) }
        : outcome;
    };
    const failed = (error: unknown) => {
      this.#waitingRoom.remove(command);
      throw error;
    };
    return this.#committer.submit<AcquireCommand>(command).then(decided, failed);
  }

  release(
    id: RequestId,
    grants: readonly { name: string; token: Token }[],
    forget: boolean,
  ): Promise<ReleaseOutcome> {
    const { names, tokens } = namesAndTokens(grants);
    return this.#committer.submit({ kind: 'release', ...withKey(id), names, tokens, forget }).then(outcomeOf);
  }

  async cancel(id: RequestId, names: readonly string[], forget: boolean): Promise<CancelOutcome> {
    const keyed = withKey(id);
    this.#waitingRoom.remove(keyed);
    const inbox = this.#inbox;
    return (await this.#committer.submit({ kind: 'cancel', ...keyed, names, inbox, forget })).outcome;
  }

  async transfer(
    from: RequestId,
    grants: readonly { name: string; token: Token }[],
    to: RequestId,
    owner: Owner,
    forget: boolean,
  ): Promise<TransferAnswer> {
    const { names, tokens } = namesAndTokens(grants);
    const inbox = this.#inbox;
    const { outcome, version } = await this.#committer.submit({
      kind: 'transfer',
      ...withKey(from),
      names,
      tokens,
      to,
      owner,
      inbox,
      forget,
    });
    return outcome.kind === 'transferred'
      ? { kind: 'transferred', grants: this.#withTokens(outcome.grants, version) }
      : outcome;
  }

  async breakHold(target: BreakTarget, reason: string, by: string): Promise<BreakOutcome> {
    const { name, token } = target;
    const holder = await findHolder(this.#engine, target);
    if (holder === undefined) return { kind: 'notHeld' };
    const { session, request } = holder;
    const atMs = this.#clock.wallMs();
    return (await this.#committer.submit({ kind: 'break', session, request, name, token, reason, by, atMs }))
      .outcome;
  }

  inspect(name: string): Promise<LockState> {
    return inspectLock(this.#engine, name);
  }

  list(prefix: string, limit: number, after?: string): Promise<readonly LockState[]> {
    return listLocks(this.#engine, prefix, limit, after);
  }

  position(id: RequestId, name: string): Promise<number | null> {
    return positionOf(this.#engine, id, name);
  }

  listen(session: string, listener: (event: SessionEvent) => void): () => void {
    this.#listeners.set(session, listener);
    return () => {
      if (this.#listeners.get(session) !== listener) return;
      this.#listeners.delete(session);
      // Whoever comes back to listen asks again for what waits, and may do so at another node.
      this.#waitingRoom.removeSession(session);
    };
  }

  /** Waits for burials under way and stops. Sessions stay as they are: their clients may go on at another node. */
  async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    this.#waitingRoom.close();
    await this.#undertaker.settled();
    this.#committer.close();
    this.#listeners.clear();
  }

  #onEnded(sessions: readonly string[]): void {
    for (const session of sessions) {
      this.#waitingRoom.removeSession(session);
      void this.#undertaker.bury(session);
    }
  }

  #onNews(message: string, version: Version): void {
    const news = decodeNews(message, version);
    if (news === undefined) return;
    if (news.kind === 'broken') {
      const { to, name, reason } = news;
      this.#listeners.get(to.session)?.({ kind: 'broken', request: to.request, name, reason });
    } else this.#waitingRoom.hear(news);
  }

  #claim(waiter: AcquireCommand): void {
    this.#committer.submit(waiter).then(
      ({ outcome, version }) => {
        if (outcome.kind === 'granted') this.#granted(waiter, outcome.grants, version);
        else if (outcome.kind === 'finished' && outcome.how === 'broken') this.#brokenUnheard(waiter);
      },
      () => {
        // The waiter stays in the waiting room, and the next poll tries again.
      },
    );
  }

  #brokenUnheard(waiter: AcquireCommand): void {
    this.#waitingRoom.remove(waiter);
    const { session, request, locks } = waiter;
    const name = locks[0]?.name ?? '';
    this.#listeners.get(session)?.({ kind: 'broken', request, name, reason: 'broken' });
  }

  #withTokens(grants: readonly Grant[], version: Version): GrantedLock[] {
    const sign = this.#sign;
    return grants.map((grant) => {
      const granted = { ...grant, token: grant.token ?? version };
      if (sign === undefined) return granted;
      const { name, mode, slot, token } = granted;
      return { ...granted, sequencer: sign({ lock: name, mode, slot, token }) };
    });
  }

  #granted(to: RequestId, grants: readonly Grant[], version: Version): void {
    this.#waitingRoom.remove(to);
    this.#listeners.get(to.session)?.({
      kind: 'granted',
      request: to.request,
      grants: this.#withTokens(grants, version),
    });
  }
}

function outcomeOf<O>({ outcome }: Decided<O>): O {
  return outcome;
}

/** The key is made once, however often it is looked up until the request is decided. */
function withKey({ session, request }: RequestId): KeyedRequest {
  return { session, request, key: requestKey(session, request) };
}

function namesAndTokens(grants: readonly { name: string; token: Token }[]): {
  names: string[];
  tokens: Token[];
} {
  return { names: grants.map((grant) => grant.name), tokens: grants.map((grant) => grant.token) };
}
