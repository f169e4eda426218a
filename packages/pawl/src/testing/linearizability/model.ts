/**
 * What an object does with one operation after the other, as in Porcupine (https://github.com/anishathalye/porcupine): a pure step from state
 * to state, so that a search can try every order.
 */
export interface Model<O, S> {
  readonly initial: S;
  /**
   * The states in which `operation`, with the reply that it got, can leave the object; none where it cannot have got this reply here, and more
   * than one where the reply does not say all. Of one of unknown outcome, a state that equals `state` is left out: then it may as well never
   * have happened.
   */
  step(state: S, operation: O): readonly S[];
  /**
   * What comes of `operations` being under way in `state`: called, and not yet in effect. Only for what makes later replies possible and none
   * impossible, since the search does not try to do without it.
   */
  underWay?(state: S, operations: readonly O[]): S;
  /** What comes of an operation that was under way and turns out never to have taken effect. */
  dropped?(state: S, operation: O): S;
  /** The same text for equal states, and only for them. */
  key(state: S): string;
  /** The state in words. */
  describe(state: S): string;
}
