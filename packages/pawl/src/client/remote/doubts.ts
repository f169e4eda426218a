import type { RequestId } from '../../core/commands.ts';
import type { Call } from '../../protocol/calls.ts';

/**
 * The requests of which a sending got lost, so that it may still arrive, at any time. Such an acquire must not be forgotten
 * when it is over, or the late one would be a new one (S5); and such a release may be answered with "not held" because it
 * itself has happened.
 */
export class Doubts {
  readonly #acquires = new Map<string, Set<string>>();
  readonly #releases = new Map<string, Set<string>>();
  readonly #calls = new WeakSet<Call>();

  /** Notes that `call` was sent and that its answer is lost. */
  note(call: Call): void {
    this.#calls.add(call);
    if (call.method === 'acquire') add(this.#acquires, call.id);
    if (call.method === 'release') add(this.#releases, call.id);
  }

  /** What to send of `call`: what ends an acquire that may still arrive lets the server remember it. */
  revise(call: Call): Call {
    if (call.method !== 'release' && call.method !== 'cancel' && call.method !== 'transfer') return call;
    return call.forget && has(this.#acquires, call.id) ? { ...call, forget: false } : call;
  }

  /** Whether this very call may have happened before it was answered. */
  about(call: Call): boolean {
    return this.#calls.has(call) || (call.method === 'release' && has(this.#releases, call.id));
  }

  /** Nothing is granted to a session that is over, however late it is asked for. */
  removeSession(session: string): void {
    this.#acquires.delete(session);
    this.#releases.delete(session);
  }
}

function add(map: Map<string, Set<string>>, { session, request }: RequestId): void {
  const requests = map.get(session);
  if (requests === undefined) map.set(session, new Set([request]));
  else requests.add(request);
}

function has(map: ReadonlyMap<string, ReadonlySet<string>>, { session, request }: RequestId): boolean {
  return map.get(session)?.has(request) === true;
}
