import type { PawlError } from '../errors.ts';
import type { Token } from '../token.ts';

/** What a client tells its observers. Names are for logs; they are no labels for metrics, since there are too many. */
export interface PawlEvents {
  acquired: {
    readonly name: string;
    readonly token: Token;
    readonly slot: number;
    readonly waitedMs: number;
  };
  /** Waiting in a queue; `position(name, requestId)` tells how it goes on. */
  queued: { readonly name: string; readonly requestId: string; readonly ahead: number };
  /** One renewal failed; the next is already planned. */
  renewFailed: { readonly ttlMs: number; readonly error: unknown };
  /** An attempt to stand for election failed, and will be repeated. */
  campaignFailed: { readonly name: string; readonly error: PawlError };
  /** Safe-stop: the lease's signal was aborted. */
  atRisk: { readonly name: string; readonly token: Token; readonly error: PawlError };
  lost: { readonly name: string; readonly token: Token; readonly error: PawlError };
  released: { readonly name: string; readonly token: Token; readonly heldMs: number };
}

export type PawlEventName = keyof PawlEvents;
type Listener<E extends PawlEventName> = (event: PawlEvents[E]) => void;

/** Tells listeners what happens. One that throws is reported as a warning of the process and disturbs nobody else. */
export class Announcer {
  readonly #listeners = new Map<PawlEventName, Set<Listener<never>>>();

  on<E extends PawlEventName>(name: E, listener: Listener<E>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** Whether anybody listens: else what costs something to say need not be said. */
  hears(name: PawlEventName): boolean {
    return (this.#listeners.get(name)?.size ?? 0) > 0;
  }

  emit<E extends PawlEventName>(name: E, event: PawlEvents[E]): void {
    const listeners = this.#listeners.get(name);
    if (listeners === undefined) return;
    for (const listener of listeners) {
      try {
        (listener as Listener<E>)(event);
      } catch (error) {
        process.emitWarning(error instanceof Error ? error : new Error(String(error)));
      }
    }
  }
}
