import { LimitError } from '../errors.ts';
import type { SessionTable } from './session-table.ts';

/** The sessions that one connection has opened and that have not ended, as far as is known here. */
export class OpenedSessions {
  readonly #sessions: SessionTable;
  readonly #most: number;
  readonly #open = new Set<string>();
  #underWay = 0;

  constructor(sessions: SessionTable, most: number) {
    this.#sessions = sessions;
    this.#most = most;
  }

  /** Opens one more by `ask`, which counts only if it succeeds. @throws LimitError, and what `ask` rejects with */
  async open(ask: () => Promise<string>): Promise<string> {
    if (this.#isFull) this.#removeEnded();
    if (this.#isFull) throw new LimitError('sessionsPerConnection', this.#most, 'share sessions');
    this.#underWay += 1;
    try {
      const session = await ask();
      this.#open.add(session);
      return session;
    } finally {
      this.#underWay -= 1;
    }
  }

  remove(session: string): void {
    this.#open.delete(session);
  }

  get #isFull(): boolean {
    return this.#open.size + this.#underWay >= this.#most;
  }

  /** A connection that lasts for months sees many sessions expire. */
  #removeEnded(): void {
    for (const session of this.#open) if (!this.#sessions.isProven(session)) this.#open.delete(session);
  }
}
