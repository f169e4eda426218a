import { NotHeldError, SessionEndedError } from '../../errors.ts';
import { LONGEST_MS } from '../../protocol/arguments.ts';
import { Fields } from '../../protocol/fields.ts';
import { readList, readLock, readOptions } from '../../protocol/read-call.ts';
import type { ServerParts } from '../parts.ts';
import type { Principal } from '../principal.ts';
import { allowedMethods } from './allowed-methods.ts';
import type { Exchange } from './exchange.ts';
import type { LongPolls } from './long-polls.ts';
import { notFound } from './problem.ts';
import type { Watches } from './watches.ts';

export interface RoutesOptions {
  readonly parts: ServerParts;
  readonly polls: LongPolls;
  readonly watches: Watches;
}

/** What stands below `/v1`: sessions and locks, for those without WebSocket. */
export class Routes {
  readonly #options: RoutesOptions;

  constructor(options: RoutesOptions) {
    this.#options = options;
  }

  /** @throws every error that the answer then tells of. */
  async serve(principal: Principal, exchange: Exchange): Promise<void> {
    const [, what, name, action, ...rest] = exchange.path;
    if (rest.length > 0) throw notFound(exchange.method, exchange.path.join('/'));
    const route = `${exchange.method} ${what}${name === undefined ? '' : '/:'}${action === undefined ? '' : `/${action}`}`;
    switch (route) {
      case 'POST sessions':
        return this.#openSession(principal, exchange);
      case 'POST sessions/:/keepalive':
        return this.#keepAlive(principal, exchange, name);
      case 'DELETE sessions/:':
        return this.#closeSession(principal, exchange, name);
      case 'GET guarantees':
        return exchange.json(200, this.#options.parts.guarantees);
      case 'GET locks':
        return this.#list(principal, exchange);
      case 'GET locks/:':
        return this.#inspect(principal, exchange, name);
      case 'GET locks/:/watch':
        return this.#options.watches.start(principal, nameOf(name), exchange);
      case 'POST locks/:/acquire':
        return this.#acquire(principal, exchange, name);
      case 'POST locks/:/release':
        return this.#release(principal, exchange, name);
      case 'POST locks/:/break':
        return this.#break(principal, exchange, name);
      default:
        throw notFound(exchange.method, exchange.path.join('/'), allowedMethods(exchange.path));
    }
  }

  async #openSession(principal: Principal, exchange: Exchange): Promise<void> {
    const ttlMs = (await exchange.body()).durationOr('ttlMs', 1, LONGEST_MS, 10_000);
    const session = await this.#desk.perform(principal, { method: 'openSession', ttlMs }, exchange);
    exchange.json(200, { session, ttlMs });
  }

  async #keepAlive(principal: Principal, exchange: Exchange, id: unknown): Promise<void> {
    const session = sessionOf(id);
    const { alive } = await this.#desk.perform(principal, { method: 'keepAlive', session, holds: [] });
    if (!alive) throw new SessionEndedError('it expired or was closed');
    exchange.json(200, { alive });
  }

  async #closeSession(principal: Principal, exchange: Exchange, id: unknown): Promise<void> {
    const session = sessionOf(id);
    await this.#desk.perform(principal, { method: 'closeSession', session }, exchange);
    exchange.json(200, { closed: true });
  }

  async #acquire(principal: Principal, exchange: Exchange, name: unknown): Promise<void> {
    const body = await exchange.body();
    const waitMs = body.durationOr('waitMs', 0, this.#options.parts.limits.longPollMs, 0);
    const [mode, permits] = [body.raw('mode'), body.raw('permits')];
    const { polls } = this.#options;
    const asked = {
      id: body.requestId(),
      lock: readLock(new Fields({ name, mode, permits })),
      options: readOptions(body, waitMs > 0),
      waitMs,
    };
    exchange.json(200, await polls.acquire(principal, asked, exchange));
  }

  async #release(principal: Principal, exchange: Exchange, name: unknown): Promise<void> {
    const body = await exchange.body();
    const grant = { name: nameOf(name), token: body.token() };
    const id = body.requestId();
    const call = { method: 'release', id, grants: [grant], forget: false } as const;
    const { kind } = await this.#desk.perform(principal, call, exchange);
    if (kind === 'notHeld') throw new NotHeldError(grant.name, `nobody holds it under token ${grant.token}`);
    exchange.json(200, { released: true });
  }

  async #break(principal: Principal, exchange: Exchange, name: unknown): Promise<void> {
    const body = await exchange.body();
    const lock = nameOf(name);
    const token = body.token();
    const slot = body.has('slot') ? body.integer('slot', 0, Number.MAX_SAFE_INTEGER) : undefined;
    const by = body.has('by') ? body.name('by') : principal.name;
    const reason = body.name('reason');
    const call = { method: 'breakHold', name: lock, token, slot, reason, by } as const;
    const { kind } = await this.#desk.perform(principal, call, exchange);
    if (kind === 'notHeld') throw new NotHeldError(lock, `nobody holds it under token ${token}`);
    exchange.json(200, { broken: true });
  }

  async #list(principal: Principal, exchange: Exchange): Promise<void> {
    const { query } = exchange;
    const limit = query.has('limit') ? Number(query.raw('limit')) : undefined;
    const [prefix, after] = [query.raw('prefix'), query.raw('after')];
    const call = readList(new Fields({ prefix, after, limit }, 'query'));
    const { locks, more } = await this.#desk.perform(principal, call);
    exchange.json(200, { locks, next: more ? (locks.at(-1)?.name ?? null) : null });
  }

  async #inspect(principal: Principal, exchange: Exchange, name: unknown): Promise<void> {
    exchange.json(200, await this.#desk.perform(principal, { method: 'inspect', name: nameOf(name) }));
  }

  get #desk() {
    return this.#options.parts.desk;
  }
}

/** @throws {InvalidArgumentError} */
function nameOf(name: unknown): string {
  return new Fields({ name }).name('name');
}

function sessionOf(session: unknown): string {
  return new Fields({ session }).session();
}
