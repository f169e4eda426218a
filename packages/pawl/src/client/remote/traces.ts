import type { RequestId } from '../../core/commands.ts';
import type { Owner } from '../../core/records.ts';
import { TRACEPARENT } from '../../protocol/tracer.ts';

/** The traces that locks were acquired in, so that what is asked about their grants later can say where it belongs. */
export class Traces {
  readonly #bySession = new Map<string, Map<string, string>>();

  /** An acquire is asked for, by an owner who shows a trace or not. */
  asked({ session, request }: RequestId, owner: Owner): void {
    const traceparent = owner[TRACEPARENT];
    if (traceparent === undefined) return;
    const traces = this.#bySession.get(session) ?? new Map<string, string>();
    this.#bySession.set(session, traces.set(request, traceparent));
  }

  /** The `traceparent` of what is asked about this acquire, if it was asked for in a trace. */
  of({ session, request }: RequestId): string | undefined {
    return this.#bySession.get(session)?.get(request);
  }

  /** The acquire is over: refused, given back or handed over. */
  remove({ session, request }: RequestId): void {
    const traces = this.#bySession.get(session);
    if (traces?.delete(request) && traces.size === 0) this.#bySession.delete(session);
  }

  removeSession(session: string): void {
    this.#bySession.delete(session);
  }
}
