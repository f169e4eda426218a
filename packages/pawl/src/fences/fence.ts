import type { Token } from '../token.ts';
import {
  type Bearer,
  type BearerRules,
  checkFinished,
  checkResource,
  checkRules,
  claimOf,
  refusal,
} from './bearer.ts';

/**
 * A fence around one resource in this process's memory. It documents the rule that every fence keeps:
 *
 * - A write is accepted only with a token that is not lower than the highest honoured so far, which it then becomes.
 * - Equal is accepted: one grant may write many times. No token is refused.
 * - Check and effect are one atomic step: nothing can come between them.
 * - A new holder may raise the fence before it first reads; from then on no older holder can slip a write in between its
 *   read and its write.
 *
 * The idea is Chubby's sequencer (Burrows, "The Chubby lock service", OSDI 2006, §2.4); the name is Kleppmann's ("How to do
 * distributed locking", 2016).
 */
export class Fence {
  readonly resource: string;
  readonly #rules: BearerRules;
  #highest: Token | undefined;

  /** @param resource its name, for messages. @throws FenceUsageError */
  constructor(resource: string, rules: BearerRules = {}) {
    checkResource(resource);
    checkRules(rules);
    this.resource = resource;
    this.#rules = rules;
  }

  /** The highest token honoured so far. */
  get highest(): Token | undefined {
    return this.#highest;
  }

  /**
   * Tells the resource of a token without writing: older holders are refused from now on. Call it before the first read.
   *
   * @throws StaleTokenError, MissingTokenError, InvalidTokenError; by its rules InvalidSequencerError, TokenJumpError
   */
  raise(bearer: Bearer): void {
    const claim = claimOf(this.resource, bearer, this.#rules);
    const refused = refusal(this.resource, claim, this.#highest);
    if (refused !== undefined) throw refused;
    this.#highest = claim.token;
  }

  /**
   * Checks the token and runs `effect` in the same step. If the effect throws, the token stays honoured: to raise a fence is
   * always safe.
   *
   * @param effect must be done when it returns; in memory nothing that awaits can be one step with the check.
   * @returns what `effect` returns.
   * @throws as {@link raise}; FenceUsageError if `effect` returns a promise.
   */
  write<T>(bearer: Bearer, effect: () => T): T {
    this.raise(bearer);
    const result = effect();
    checkFinished(this.resource, result);
    return result;
  }
}
