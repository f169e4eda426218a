import type { RequestId } from '../../core/commands.ts';
import type { CallOf } from '../../protocol/calls.ts';
import { TransientMap } from '../../transient-map.ts';

interface Entry {
  readonly call: CallOf<'acquire'>;
  /** The server has said that it waits in a queue; before that, the request itself is still under way. */
  waits: boolean;
}

/** The acquires that were asked for and are not decided: what to ask for again on a new connection. */
export class Queued {
  readonly #bySession = new Map<string, TransientMap<string, Entry>>();

  asked(call: CallOf<'acquire'>): void {
    const { session, request } = call.id;
    const entries = this.#bySession.get(session) ?? new TransientMap<string, Entry>();
    this.#bySession.set(session, entries.set(request, { call, waits: false }));
  }

  /** The server says that it is in the queue. Its grant may have been told of before. */
  waits({ session, request }: RequestId): void {
    const entry = this.#bySession.get(session)?.get(request);
    if (entry !== undefined) entry.waits = true;
  }

  has({ session, request }: RequestId): boolean {
    return this.#bySession.get(session)?.has(request) === true;
  }

  /** @returns whether it was undecided. */
  remove({ session, request }: RequestId): boolean {
    const entries = this.#bySession.get(session);
    const removed = entries?.delete(request) === true;
    if (entries?.size === 0) this.#bySession.delete(session);
    return removed;
  }

  removeSession(session: string): void {
    this.#bySession.delete(session);
  }

  /** Those that wait in a queue. */
  get waiting(): CallOf<'acquire'>[] {
    return [...this.#bySession.values()].flatMap((entries) =>
      [...entries.values()].filter((entry) => entry.waits).map((entry) => entry.call),
    );
  }
}
