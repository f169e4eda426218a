import { type Bearer, type BearerRules, checkResource, checkRules } from '../bearer.ts';
import { Fence } from '../fence.ts';

/** Fences of any number of resources in this process's memory: for a server that keeps its data there too, and for tests. */
export interface MemoryFence {
  /** @throws StaleTokenError, MissingTokenError, InvalidTokenError; by its rules InvalidSequencerError, TokenJumpError */
  raise(resource: string, bearer: Bearer): void;
}

/**
 * It remembers the highest token of every resource for as long as it lives, and forgets all with the process: a server whose data
 * outlives it needs a store that does too.
 *
 * @throws FenceUsageError
 */
export function memoryFence(rules: BearerRules = {}): MemoryFence {
  checkRules(rules);
  const fences = new Map<string, Fence>();
  return {
    raise(resource, bearer) {
      checkResource(resource);
      const fence = fences.get(resource) ?? new Fence(resource, rules);
      fence.raise(bearer);
      // Only now: what was refused leaves nothing behind.
      fences.set(resource, fence);
    },
  };
}
