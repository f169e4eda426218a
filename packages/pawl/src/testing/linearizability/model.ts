/**
 * What an object does with one operation after the other, as in Porcupine (https://github.com/anishathalye/porcupine): a pure step from state
 * to state, so that a search can try every order.
 */
export interface Model<O, S> {
  readonly initial: S;
  /**
   * The state after `operation` took effect with the reply that it got, or `undefined` where it cannot have got this reply here. One of unknown
   * outcome that would change nothing is `undefined` too: then it may as well never have happened.
   */
  step(state: S, operation: O): S | undefined;
  /** The same text for equal states, and only for them. */
  key(state: S): string;
  /** The state in words. */
  describe(state: S): string;
}
