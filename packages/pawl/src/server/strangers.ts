import { LimitError } from '../errors.ts';
import type { Call } from '../protocol/calls.ts';
import type { SessionTable } from './session-table.ts';

/**
 * The sessions that one client names and that are not known here to be alive. To find out that one is not costs the engine more than
 * it costs the client to make it up, so there may be few of them.
 */
export class Strangers {
  readonly #sessions: SessionTable;
  readonly #most: number;
  readonly #inFlight = new Map<string, number>();
  #dead = 0;

  constructor(sessions: SessionTable, most: number) {
    this.#sessions = sessions;
    this.#most = most;
  }

  /**
   * A request is about to be asked for. @returns whether its session is not known; then {@link end} has to follow.
   * @throws LimitError where too many unknown sessions are asked about at the same time.
   */
  begin(call: Call): boolean {
    const session = sessionOf(call);
    if (session === undefined || this.#sessions.isProven(session)) return false;
    const present = this.#inFlight.get(session) ?? 0;
    if (present === 0 && this.#inFlight.size >= this.#most)
      throw new LimitError('unknownSessions', this.#most, 'name fewer at the same time');
    this.#inFlight.set(session, present + 1);
    return true;
  }

  /** A request of a session that was not known is over. */
  end(call: Call, answered: boolean): void {
    const session = sessionOf(call) ?? '';
    const left = (this.#inFlight.get(session) ?? 1) - 1;
    if (left > 0) this.#inFlight.set(session, left);
    else this.#inFlight.delete(session);
    if (answered && left === 0 && !this.#sessions.isProven(session)) this.#dead += 1;
  }

  /** Whether so many were dead that the client may start anew with another connection. */
  get areTooMany(): boolean {
    return this.#dead > this.#most;
  }
}

function sessionOf(call: Call): string | undefined {
  if (call.method === 'listen' || call.method === 'unlisten') return undefined;
  if ('session' in call) return call.session;
  return 'id' in call ? call.id.session : undefined;
}
