import type { Clock } from '../clock.ts';
import { isPawlError, TtlTooShortError } from '../errors.ts';
import type { AcquireAnswer, LockService, LockState } from '../node/service.ts';
import type { Call, CallOf, Method } from '../protocol/calls.ts';
import { type ListPage, type ResultOf, tokenAsText } from '../protocol/results.ts';
import type { Exchange } from './http/exchange.ts';
import type { Limits } from './limits.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import type { Principal } from './principal.ts';
import type { SessionTable } from './session-table.ts';

/** A page of a listing ends once it has so many bytes of JSON. */
const PAGE_BYTES = 512 * 1024;

export interface DeskOptions {
  readonly service: LockService;
  readonly sessions: SessionTable;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly metrics: ServerMetrics;
}

/** The calls that concern the locks; the others concern the connection. */
export type DeskCall = Exclude<Call, { method: 'authenticate' | 'ping' | 'listen' | 'unlisten' }>;

/**
 * Where everything that clients ask for passes, on whichever way it came: rights and limits are checked, and the node does it.
 * Nothing is awaited before the node is asked, so that what one client asks for happens in its order.
 */
export class Desk {
  readonly #options: DeskOptions;

  constructor(options: DeskOptions) {
    this.#options = options;
  }

  /**
   * @param _exchange by which the call came, for those who have to know: by HTTP.
   * @throws ForbiddenError, UnauthenticatedError (the token has expired), LimitError, and what the node throws
   */
  perform<C extends DeskCall>(
    principal: Principal,
    call: C,
    _exchange?: Exchange,
  ): Promise<ResultOf<C['method']>> {
    try {
      principal.checkTime(this.#options.clock.wallMs());
      // Each branch answers as its method is answered, which the compiler cannot follow.
      return this.#perform(principal, call) as Promise<ResultOf<C['method']>>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #perform(principal: Principal, call: DeskCall): Promise<ResultOf<Method>> {
    const { service } = this.#options;
    switch (call.method) {
      case 'acquire':
        return this.#acquire(principal, call);
      case 'release':
        return this.#release(principal, call);
      case 'keepAlive':
        return this.#keepAlive(call);
      case 'openSession':
        return this.#openSession(call.ttlMs);
      case 'closeSession':
        return this.#closeSession(call.session);
      case 'cancel':
        for (const name of call.names) principal.require('acquire', name);
        return this.#cancel(call);
      case 'transfer':
        return this.#transfer(principal, call);
      case 'breakHold': {
        principal.require('break', call.name);
        return service.breakHold(call, call.reason, call.by);
      }
      case 'inspect':
        principal.require('read', call.name);
        return service.inspect(call.name);
      case 'list':
        principal.requireAll('read', call.prefix);
        return this.#list(call);
      case 'position':
        // Of a waiter of one's own: its session has to be known.
        principal.require('acquire', call.name);
        return service.position(call.id, call.name);
    }
  }

  async #openSession(ttlMs: number): Promise<string> {
    const { service, sessions } = this.#options;
    this.#checkTtl('ttlMs', ttlMs);
    sessions.checkRoom();
    const session = await service.openSession(ttlMs);
    sessions.use(session);
    return session;
  }

  async #keepAlive({ session, holds }: CallOf<'keepAlive'>): Promise<ResultOf<'keepAlive'>> {
    const { service, sessions } = this.#options;
    const answer = await service.keepAlive(session, holds);
    if (answer.alive) sessions.use(session);
    else sessions.ended(session);
    for (const { request } of answer.gone) sessions.over({ session, request });
    return answer;
  }

  async #closeSession(session: string): Promise<null> {
    const { service, sessions, metrics } = this.#options;
    await service.closeSession(session);
    metrics.endings.add(sessions.ended(session), 'closed');
    return null;
  }

  #acquire(principal: Principal, { id, locks, options }: CallOf<'acquire'>): Promise<AcquireAnswer> {
    const { service, sessions } = this.#options;
    for (const { name } of locks) principal.require('acquire', name);
    if (options.lockDelayMs > 0) this.#checkTtl('lockDelayMs', options.lockDelayMs);
    const isNew = sessions.asked(id, locks.length);
    const answered = (answer: AcquireAnswer) => {
      if (answer.kind === 'granted' || answer.kind === 'queued') sessions.use(id.session);
      else if (answer.kind === 'sessionEnded') sessions.ended(id.session);
      else if (answer.kind !== 'mismatch') sessions.over(id);
      return answer;
    };
    const failed = (error: unknown) => {
      // What surely did not happen neither holds nor waits.
      if (isNew && isPawlError(error) && error.outcome === 'definite') sessions.over(id);
      throw error;
    };
    return service.acquire(id, locks, options).then(answered, failed);
  }

  #release(principal: Principal, call: CallOf<'release'>): Promise<ResultOf<'release'>> {
    const { service, sessions } = this.#options;
    for (const { name } of call.grants) principal.require('acquire', name);
    return service.release(call.id, call.grants, call.forget).then((outcome) => {
      if (outcome.kind === 'released') sessions.use(call.id.session);
      sessions.over(call.id, !call.forget);
      return outcome;
    });
  }

  async #cancel(call: CallOf<'cancel'>): Promise<ResultOf<'cancel'>> {
    const { service, sessions } = this.#options;
    const outcome = await service.cancel(call.id, call.names, call.forget);
    sessions.over(call.id, !call.forget);
    return outcome;
  }

  async #transfer(principal: Principal, call: CallOf<'transfer'>): Promise<ResultOf<'transfer'>> {
    const { service, sessions } = this.#options;
    for (const { name } of call.grants) principal.require('acquire', name);
    sessions.asked(call.to, call.grants.length);
    const answer = await service.transfer(call.id, call.grants, call.to, call.owner, call.forget);
    if (answer.kind === 'transferred') for (const { session } of [call.id, call.to]) sessions.use(session);
    sessions.over(answer.kind === 'transferred' ? call.id : call.to, !call.forget);
    return answer;
  }

  async #list({ prefix, limit, after }: CallOf<'list'>): Promise<ListPage> {
    const found = await this.#options.service.list(prefix, limit, after);
    const locks: LockState[] = [];
    let bytes = 0;
    for (const state of found) {
      bytes += JSON.stringify(state, tokenAsText).length;
      if (locks.length > 0 && bytes > PAGE_BYTES) break;
      locks.push(state);
    }
    return { locks, more: locks.length < found.length || found.length === limit };
  }

  #checkTtl(parameter: string, askedMs: number): void {
    const { minTtlMs, engine } = this.#options.service.guarantees;
    if (askedMs < minTtlMs) throw new TtlTooShortError(parameter, askedMs, minTtlMs, engine);
  }
}
