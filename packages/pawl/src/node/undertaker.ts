import { randomBytes } from 'node:crypto';
import { requestOfKey, requestPrefix } from '../core/names.ts';
import { decodeRequest } from '../core/records.ts';
import type { Engine } from '../engines/engine.ts';
import type { Committer } from './committer.ts';

/** So many requests of a session are buried at a time. */
const PAGE = 256;

/** An id for a session: nobody can guess it, and none is used twice. */
export function newSessionId(): string {
  return randomBytes(16).toString('hex');
}

/** Cleans up after sessions: removes whatever they wait for and hold, so that others go on. */
export class Undertaker {
  readonly #engine: Engine;
  readonly #committer: Committer;
  readonly #atWork = new Map<string, Promise<void>>();

  constructor(engine: Engine, committer: Committer) {
    this.#engine = engine;
    this.#committer = committer;
  }

  /**
   * Buries a session that has ended: holders with a lock-delay leave a ghost, everything else goes. Never rejects: the
   * engine's feed tells of the session again until it was buried.
   */
  bury(session: string): Promise<void> {
    let work = this.#atWork.get(session);
    if (work === undefined) {
      this.#committer.noteEnded(session);
      work = this.#buryAndForget(session)
        .catch(leaveToTheFeed)
        .finally(() => this.#atWork.delete(session));
      this.#atWork.set(session, work);
    }
    return work;
  }

  /** Gives back all that a live session has, cleanly: no lock-delay. */
  async clear(session: string): Promise<void> {
    await this.#removeRequests(session, false);
  }

  /** Waits for what is under way. */
  async settled(): Promise<void> {
    await Promise.all(this.#atWork.values());
  }

  async #buryAndForget(session: string): Promise<void> {
    await this.#removeRequests(session, true);
    await this.#engine.forgetSessions([session]);
  }

  async #removeRequests(session: string, haunt: boolean): Promise<void> {
    for (;;) {
      const entries = await this.#engine.list(requestPrefix(session), PAGE);
      const burials = entries.map(async ({ key, value }) => {
        const { locks, state, lockDelayMs } = decodeRequest(key, value);
        const ghost =
          haunt && state === 'held' && lockDelayMs > 0 ? await this.#openGhost(lockDelayMs) : null;
        const names = locks.map((lock) => lock.name);
        await this.#committer.submit({ kind: 'bury', session, request: requestOfKey(key), names, ghost });
      });
      await Promise.all(burials);
      if (entries.length < PAGE) return;
    }
  }

  async #openGhost(lockDelayMs: number): Promise<string> {
    const ghost = newSessionId();
    await this.#engine.openSession(ghost, lockDelayMs);
    return ghost;
  }
}

function leaveToTheFeed(): void {}
