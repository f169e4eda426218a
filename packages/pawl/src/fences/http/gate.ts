import { checkResource } from '../bearer.ts';
import { FenceUsageError } from '../errors.ts';
import { bearerOf } from './header.ts';
import type { HttpFenceOptions } from './options.ts';
import { type Problem, problemOf } from './problem.ts';
import { Turns } from './turns.ts';

/** What becomes of a request: refused with a problem, or let in until `done` is called. */
export type Entry =
  | { readonly problem: Problem }
  | { readonly problem: undefined; readonly done: () => void };

const LET_THROUGH = { problem: undefined, done: () => {} } satisfies Entry;

/** What all frameworks have in common: which resource, which token, and whose turn. */
export class Gate<Request> {
  readonly serialized: boolean;
  readonly #options: HttpFenceOptions<Request>;
  readonly #turns = new Turns();

  /** @throws FenceUsageError */
  constructor(options: HttpFenceOptions<Request>) {
    if (typeof options?.resource !== 'function' || typeof options.store?.raise !== 'function') {
      throw new FenceUsageError(
        'http',
        'A fence for HTTP needs a store with "raise", and a function "resource".',
      );
    }
    this.#options = options;
    this.serialized = options.serialized === true;
  }

  /** @throws what the store throws where it is in trouble, and FenceUsageError where `resource` returns no name. */
  async enter(request: Request, header: string | readonly string[] | undefined): Promise<Entry> {
    const resource = this.#options.resource(request);
    if (resource === undefined) return LET_THROUGH;
    checkResource(resource);
    const done = this.serialized ? await this.#turns.take(resource) : LET_THROUGH.done;
    const bearer = bearerOf(header);
    try {
      await this.#options.store.raise(resource, bearer);
      return { problem: undefined, done };
    } catch (error) {
      done();
      const problem = problemOf(error, { resource, bearer });
      if (problem === undefined) throw error;
      return { problem };
    }
  }
}
