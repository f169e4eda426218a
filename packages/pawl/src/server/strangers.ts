import { LimitError } from '../errors.ts';
import type { Call } from '../protocol/calls.ts';
import type { SessionTable } from './session-table.ts';

/**
 * The sessions that one client names and that are not known here to be alive. To find out that one is not costs the engine more than
 * it costs the client to make it up, so there may be few of them, and one request of each is asked first: the others wait for its answer.
 */
export class Strangers {
  readonly #sessions: SessionTable;
  readonly #most: number;
  /** What waits behind the first request of each that is asked about. */
  readonly #behind = new Map<string, Admitted[]>();
  #dead = 0;

  constructor(sessions: SessionTable, most: number) {
    this.#sessions = sessions;
    this.#most = most;
  }

  /**
   * Has a request asked for: now, or once it is known what became of its session. {@link end} has to follow where `ask` is told that it
   * is the first.
   *
   * @throws LimitError where too many unknown sessions are asked about at the same time.
   */
  admit(call: Call, ask: Admitted): void {
    const session = sessionOf(call);
    if (session === undefined || this.#sessions.isProven(session)) {
      ask(false);
      return;
    }
    const behind = this.#behind.get(session);
    if (behind !== undefined) {
      behind.push(ask);
      return;
    }
    if (this.#behind.size >= this.#most)
      throw new LimitError('unknownSessions', this.#most, 'name fewer at the same time');
    this.#behind.set(session, []);
    ask(true);
  }

  /** The first request of an unknown session is over. Without an answer, the next takes its place. */
  end(call: Call, answered: boolean): void {
    const session = sessionOf(call) ?? '';
    const behind = this.#behind.get(session) ?? [];
    const next = answered ? undefined : behind.shift();
    if (next !== undefined) {
      next(true);
      return;
    }
    this.#behind.delete(session);
    if (answered && !this.#sessions.isProven(session)) this.#dead += 1;
    for (const ask of behind) ask(false);
  }

  /** Whether so many were dead that the client may start anew with another connection. */
  get areTooMany(): boolean {
    return this.#dead > this.#most;
  }
}

/** Asks for a request, which is the first of a session that is not known, or not. */
type Admitted = (isFirst: boolean) => void;

function sessionOf(call: Call): string | undefined {
  if (call.method === 'listen' || call.method === 'unlisten') return undefined;
  if ('session' in call) return call.session;
  return 'id' in call ? call.id.session : undefined;
}
