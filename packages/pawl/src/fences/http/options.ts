import type { Bearer } from '../bearer.ts';

/**
 * Where the highest token of each resource is kept. Every fence with names of resources is one: `sqliteFence(db)`,
 * `redisFence(client)`, `memoryFence()`; or any object whose `raise` honours a token in one atomic step and throws where it is refused.
 */
export interface FenceStore {
  /** @throws StaleTokenError, MissingTokenError, InvalidTokenError, or by its rules InvalidSequencerError, TokenJumpError */
  raise(resource: string, bearer: Bearer): void | Promise<void>;
}

export interface HttpFenceOptions<Request> {
  readonly store: FenceStore;
  /** Which resource the request is for; `undefined` for one that needs no token, such as a read. */
  readonly resource: (request: Request) => string | undefined;
  /**
   * Lets requests for one resource in one after another, from the check until the handler is done. Then, among the requests of this
   * process, check and effect are one step.
   */
  readonly serialized?: boolean | undefined;
}
