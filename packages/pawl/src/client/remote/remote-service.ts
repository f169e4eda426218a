import type { Clock } from '../../clock.ts';
import type {
  AskedLock,
  BreakOutcome,
  CancelOutcome,
  ReleaseOutcome,
  RequestId,
} from '../../core/commands.ts';
import type { Owner } from '../../core/records.ts';
import type { EngineGuarantees } from '../../engines/engine.ts';
import { EngineUnavailableError, isPawlError } from '../../errors.ts';
import type {
  AcquireAnswer,
  AcquireOptions,
  BreakTarget,
  Hold,
  KeepAliveAnswer,
  LockService,
  LockState,
  SessionEvent,
  TransferAnswer,
} from '../../node/service.ts';
import { type Call, type CallOf, LONGEST_PAGE, MOST_HOLDS, type NamedToken } from '../../protocol/calls.ts';
import { readEvent } from '../../protocol/states.ts';
import { settle } from '../settle.ts';
import { breakHappened, releaseHappened } from './aftermath.ts';
import { Doubts } from './doubts.ts';
import { Link, type LinkOptions } from './link.ts';
import { Queued } from './queued.ts';
import { Traces } from './traces.ts';

export interface RemoteServiceOptions extends Pick<LinkOptions, 'urls' | 'dialer' | 'clock'> {
  /** What the server's engine promises, where that is known before the server says it. */
  readonly guarantees?: EngineGuarantees;
}

/**
 * A node behind a server. Sessions outlast connections: after each one that drops it subscribes to their events anew, and asks again
 * for whatever waits in a queue, since the news of its grant may have gone to the old connection.
 *
 * A lost `openSession` opens a second session: the server makes the ids, since whoever knows one can act for the session. The
 * first holds nothing and expires.
 */
export class RemoteService implements LockService {
  readonly #link: Link;
  readonly #doubts = new Doubts();
  readonly #queued = new Queued();
  readonly #traces = new Traces();
  readonly #listeners = new Map<string, (event: SessionEvent) => void>();
  readonly #clock: Clock;
  /** How many connections there have been. */
  #connections = 0;
  #guarantees: EngineGuarantees | undefined;

  constructor({ guarantees, ...options }: RemoteServiceOptions) {
    this.#guarantees = guarantees;
    this.#clock = options.clock;
    this.#link = new Link({
      ...options,
      onConnected: () => this.#onConnected(),
      onEvent: (message) => this.#onEvent(message),
      onSend: (call) => this.#doubts.revise(call),
      onDoubt: (call) => this.#doubts.note(call),
    });
  }

  /** Resolves once a server has greeted. @throws UnauthenticatedError, ForbiddenError, ClosedError */
  async ready(): Promise<void> {
    this.#guarantees = (await this.#link.greeting).guarantees;
  }

  /** Why the last attempt to reach a server failed, if one did. */
  get lastFailure(): unknown {
    return this.#link.lastFailure;
  }

  /** @throws EngineUnavailableError before any server has greeted. */
  get guarantees(): EngineGuarantees {
    if (this.#guarantees !== undefined) return this.#guarantees;
    throw new EngineUnavailableError('No server has greeted yet.', 'definite');
  }

  openSession(ttlMs: number): Promise<string> {
    return this.#link.call({ method: 'openSession', ttlMs });
  }

  async keepAlive(session: string, holds: readonly Hold[]): Promise<KeepAliveAnswer> {
    if (holds.length <= MOST_HOLDS) return this.#link.call({ method: 'keepAlive', session, holds });
    const parts: Promise<KeepAliveAnswer>[] = [];
    for (let from = 0; from < holds.length; from += MOST_HOLDS)
      parts.push(this.keepAlive(session, holds.slice(from, from + MOST_HOLDS)));
    const answers = await Promise.all(parts);
    return {
      alive: answers.every((answer) => answer.alive),
      gone: answers.flatMap((answer) => answer.gone),
    };
  }

  async closeSession(session: string): Promise<void> {
    this.#queued.removeSession(session);
    this.#traces.removeSession(session);
    await this.#link.call({ method: 'closeSession', session });
  }

  async acquire(id: RequestId, locks: readonly AskedLock[], options: AcquireOptions): Promise<AcquireAnswer> {
    const call: Call = { method: 'acquire', id, locks, options };
    this.#queued.asked(call);
    this.#traces.asked(id, options.owner);
    try {
      const answer = await this.#link.call(call);
      if (answer.kind === 'queued') this.#queued.waits(id);
      else {
        this.#queued.remove(id);
        if (answer.kind !== 'granted') this.#traces.remove(id);
      }
      return answer;
    } catch (error) {
      this.#queued.remove(id);
      this.#traces.remove(id);
      throw error;
    }
  }

  async release(id: RequestId, grants: readonly NamedToken[], forget: boolean): Promise<ReleaseOutcome> {
    const traceparent = this.#traces.of(id);
    const call: Call = { method: 'release', id, grants, forget, traceparent };
    let outcome: ReleaseOutcome;
    try {
      outcome = await this.#link.call(call);
    } catch (error) {
      if (isPawlError(error) && error.outcome === 'indefinite') this.#doubts.note(call);
      throw error;
    }
    this.#traces.remove(id);
    const unsure = outcome.kind === 'notHeld' && this.#doubts.about(call);
    return unsure && (await releaseHappened(this, id.session, grants))
      ? { kind: 'alreadyReleased' }
      : outcome;
  }

  cancel(id: RequestId, names: readonly string[], forget: boolean): Promise<CancelOutcome> {
    this.#queued.remove(id);
    this.#traces.remove(id);
    return this.#link.call({ method: 'cancel', id, names, forget });
  }

  async transfer(
    from: RequestId,
    grants: readonly NamedToken[],
    to: RequestId,
    owner: Owner,
    forget: boolean,
  ): Promise<TransferAnswer> {
    const traceparent = this.#traces.of(from);
    const call: Call = { method: 'transfer', id: from, grants, to, owner, forget, traceparent };
    const answer = await this.#link.call(call);
    this.#traces.remove(from);
    return answer;
  }

  async breakHold({ name, token, slot }: BreakTarget, reason: string, by: string): Promise<BreakOutcome> {
    const call: Call = { method: 'breakHold', name, token, slot, reason, by };
    const outcome = await this.#link.call(call);
    if (outcome.kind === 'broken' || !this.#doubts.about(call)) return outcome;
    return (await breakHappened(this, call)) ?? outcome;
  }

  inspect(name: string): Promise<LockState> {
    return this.#link.call({ method: 'inspect', name });
  }

  async list(prefix: string, limit: number, after?: string): Promise<readonly LockState[]> {
    const locks: LockState[] = [];
    for (;;) {
      const page = Math.min(limit - locks.length, LONGEST_PAGE);
      const last = locks.at(-1)?.name ?? after;
      const found = await this.#link.call({ method: 'list', prefix, limit: page, after: last });
      locks.push(...found.locks);
      if (!found.more || locks.length >= limit) return locks;
    }
  }

  position(id: RequestId, name: string): Promise<number | null> {
    return this.#link.call({ method: 'position', id, name });
  }

  listen(session: string, listener: (event: SessionEvent) => void): () => void {
    this.#listeners.set(session, listener);
    void this.#subscribe(session);
    return () => {
      this.#listeners.delete(session);
      this.#queued.removeSession(session);
      this.#doubts.removeSession(session);
      this.#traces.removeSession(session);
      this.#link.call({ method: 'unlisten', session }).catch(leaveToReconnect);
    };
  }

  async close(): Promise<void> {
    this.#link.close();
  }

  #onConnected(): void {
    this.#connections += 1;
    for (const session of this.#listeners.keys()) void this.#subscribe(session);
    for (const call of this.#queued.waiting) void this.#askAgain(call);
  }

  /** Listens to a session's news, however often a busy server refuses that: a grant that is not heard of would be held by nobody. */
  async #subscribe(session: string): Promise<void> {
    let unheard = false;
    const answered = await this.#untilAnswered(
      () => this.#link.call({ method: 'listen', session }),
      () => {
        unheard = true;
        return this.#listeners.has(session);
      },
    );
    if (answered === undefined || !unheard) return;
    for (const call of this.#queued.waiting) if (call.id.session === session) void this.#askAgain(call);
  }

  /** A waiter whose news may have been lost: it waits on, was granted meanwhile, or even broken after that. */
  async #askAgain(call: CallOf<'acquire'>): Promise<void> {
    const { session, request } = call.id;
    const answered = await this.#untilAnswered(
      () => this.#link.call({ ...call }),
      () => this.#queued.has(call.id),
    );
    const answer = answered?.value;
    if (answer?.kind !== 'granted' && answer?.kind !== 'finished') return;
    if (!this.#queued.remove(call.id)) return;
    const tell = this.#listeners.get(session);
    if (answer.kind === 'granted') tell?.({ kind: 'granted', request, grants: answer.grants });
    else tell?.({ kind: 'broken', request, name: call.locks[0]?.name ?? '', reason: answer.how });
  }

  /** What `ask` comes to, repeated for as long as there is a point in it; a new connection begins anew. */
  async #untilAnswered<T>(ask: () => Promise<T>, hasPoint: () => boolean): Promise<{ value: T } | undefined> {
    const connection = this.#connections;
    const goOn = () => hasPoint() && connection === this.#connections;
    try {
      return { value: await settle(ask, { clock: this.#clock, goOn }) };
    } catch {
      return undefined;
    }
  }

  #onEvent(message: unknown): void {
    const told = readEvent(message);
    if (told === undefined) return;
    const { session, event } = told;
    if (event.kind === 'granted') this.#queued.remove({ session, request: event.request });
    this.#listeners.get(session)?.(event);
  }
}

function leaveToReconnect(): void {}
