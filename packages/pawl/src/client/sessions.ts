import { ClosedError } from '../errors.ts';
import { now } from './deadline.ts';
import { ClientSession, type SessionContext } from './session.ts';

/** The sessions of a client: one for each TTL in use, opened when it is first needed. */
export class Sessions {
  readonly #context: Omit<SessionContext, 'onOver'>;
  readonly #byTtl = new Map<number, Promise<ClientSession>>();
  /** Those of {@link #byTtl} that are open. */
  readonly #open = new Map<number, ClientSession>();
  readonly #live = new Set<ClientSession>();
  #closed = false;

  constructor(context: Omit<SessionContext, 'onOver'>) {
    this.#context = context;
  }

  /** The session of this TTL, if it is open and could start a new lease. */
  present(ttlMs: number): ClientSession | undefined {
    const session = this.#open.get(ttlMs);
    return session?.fresh ? session : undefined;
  }

  /** The session of this TTL, opened if there is none that could start a new lease. Callers are served in their order. */
  async get(ttlMs: number): Promise<ClientSession> {
    for (;;) {
      const present = this.#byTtl.get(ttlMs);
      const opening = present ?? this.#start(ttlMs);
      const session = await opening;
      // A new one that is not fresh was opened too slowly; another would be no faster.
      if (session.fresh || present === undefined) return session;
      if (this.#byTtl.get(ttlMs) === opening) this.#byTtl.delete(ttlMs);
    }
  }

  /** Sessions that have not ended. */
  get live(): readonly ClientSession[] {
    return [...this.#live];
  }

  /** Takes no new sessions; @returns those that were live. */
  shut(): readonly ClientSession[] {
    this.#closed = true;
    return this.live;
  }

  #start(ttlMs: number): Promise<ClientSession> {
    if (this.#closed) throw new ClosedError('This Pawl client');
    const opening = this.#openOne(ttlMs);
    this.#byTtl.set(ttlMs, opening);
    opening.catch(() => {
      if (this.#byTtl.get(ttlMs) === opening) this.#byTtl.delete(ttlMs);
    });
    return opening;
  }

  async #openOne(ttlMs: number): Promise<ClientSession> {
    const openedAt = now(this.#context.clock);
    const id = await this.#context.service.openSession(ttlMs);
    const session = new ClientSession(id, ttlMs, openedAt, {
      ...this.#context,
      onOver: (over) => {
        this.#live.delete(over);
        if (this.#open.get(ttlMs) === over) this.#open.delete(ttlMs);
      },
    });
    this.#live.add(session);
    this.#open.set(ttlMs, session);
    if (this.#closed) {
      const closed = new ClosedError('This Pawl client');
      await session.close(closed);
      throw closed;
    }
    return session;
  }
}
