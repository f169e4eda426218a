import { AsyncLocalStorage } from 'node:async_hooks';
import type { Lease } from './lease.ts';

interface Scope {
  readonly lease: Lease;
  readonly outer: Scope | undefined;
}

/** Knows, for the flow of calls it is asked from, which leases the surrounding `withLock` calls hold. */
export class Scopes {
  readonly #current = new AsyncLocalStorage<Scope>();

  /** Runs `work` as surrounded by `lease`. */
  run<T>(lease: Lease, work: () => T): T {
    return this.#current.run({ lease, outer: this.#current.getStore() }, work);
  }

  /** The surrounding lease on `name` that is in force, if there is one. */
  find(name: string): Lease | undefined {
    for (let scope = this.#current.getStore(); scope !== undefined; scope = scope.outer) {
      if (scope.lease.name === name && scope.lease.held) return scope.lease;
    }
    return undefined;
  }
}
