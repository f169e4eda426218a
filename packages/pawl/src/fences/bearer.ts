import { isToken, MAX_TOKEN, type Token } from '../token.ts';
import {
  FenceUsageError,
  InvalidSequencerError,
  InvalidTokenError,
  MissingTokenError,
  StaleTokenError,
  TokenJumpError,
} from './errors.ts';
import { checkKeys, type Sequencer, type SequencerKeys, verifySequencer } from './sequencer.ts';

/**
 * What carries a token: a lease of any lock, the bare token, or a signed sequencer (text) where the fence knows keys.
 * `null` and `undefined` are refused, not let through.
 */
export type Bearer =
  | Token
  | { readonly token: Token; readonly sequencer?: string | undefined }
  | string
  | null
  | undefined;

/** What a fence accepts besides bare tokens of any height. */
export interface BearerRules {
  /** Accept signed sequencers in place of tokens. */
  readonly sequencer?: SequencerRules | undefined;
  /**
   * How far a token that nobody signed may be above the highest honoured so far (0 where none was). It bounds how far one forged
   * token can go; tokens of a lock grow with all that its store does, so leave room for that.
   */
  readonly maxJump?: bigint | undefined;
}

export interface SequencerRules {
  readonly keys: SequencerKeys;
  /** Refuse every token that is not signed. */
  readonly required?: boolean | undefined;
  /**
   * Whether this sequencer is good for this resource. Unless set, the resource must have the name of the lock, with `#slot` after it
   * for a permit of a semaphore.
   */
  readonly accepts?: ((sequencer: Sequencer, resource: string) => boolean) | undefined;
  /** Needed only for sequencers that expire; `systemClock` of `pawl` is one. */
  readonly clock?: { wallMs(): number } | undefined;
}

/** A token as a fence has to judge it. */
export interface Claim {
  readonly token: Token;
  /** The highest honoured so far (0 where none was) must be at least this for the token to be believed: what `maxJump` leaves, or 0. */
  readonly floor: bigint;
}

/** @throws FenceUsageError */
export function checkRules({ sequencer, maxJump }: BearerRules): void {
  if (maxJump !== undefined && (typeof maxJump !== 'bigint' || maxJump < 1n || maxJump > MAX_TOKEN)) {
    throw new FenceUsageError('maxJump', 'maxJump must be a bigint from 1 to 2^63 - 1.');
  }
  if (sequencer !== undefined) checkKeys(sequencer.keys);
}

/** @throws MissingTokenError, InvalidTokenError, InvalidSequencerError */
export function claimOf(resource: string, bearer: Bearer, rules: BearerRules = {}): Claim {
  const { sequencer, maxJump = MAX_TOKEN } = rules;
  const carried = carriedBy(bearer, sequencer !== undefined);
  if (carried === undefined || carried === null) throw new MissingTokenError(resource);
  if (typeof carried === 'string' && sequencer !== undefined) {
    return { token: signedToken(resource, carried, sequencer), floor: 0n };
  }
  if (!isToken(carried)) {
    throw new InvalidTokenError(resource, `${typeof carried} ${textOf(carried).slice(0, 80)}`);
  }
  if (sequencer?.required === true) {
    throw new InvalidSequencerError(resource, 'only a signed one is accepted here, and this is a bare token');
  }
  return { token: carried, floor: carried > maxJump ? carried - maxJump : 0n };
}

/** The token alone, for fences without rules. @throws MissingTokenError, InvalidTokenError */
export function tokenOf(resource: string, bearer: Bearer): Token {
  return claimOf(resource, bearer).token;
}

/** Why a fence that has honoured `highest` refuses the claim; `undefined` where it accepts it. The rule that every fence keeps. */
export function refusal(
  resource: string,
  { token, floor }: Claim,
  highest: Token | undefined,
): StaleTokenError | TokenJumpError | undefined {
  if (highest !== undefined && token < highest) return new StaleTokenError(resource, token, highest);
  if ((highest ?? 0n) < floor) return new TokenJumpError(resource, token, highest);
  return undefined;
}

/** @throws FenceUsageError where `resource` is no name. */
export function checkResource(resource: unknown): asserts resource is string {
  if (typeof resource === 'string' && resource !== '' && resource.isWellFormed()) return;
  throw new FenceUsageError(
    textOf(resource),
    'The name of a fenced resource must be a string that is not empty, and well-formed: without a half of a surrogate pair.',
  );
}

/** An effect that goes on after the check returned would not be one step with it. */
export function checkFinished(resource: string, result: unknown): void {
  if (typeof result !== 'object' || result === null || !('then' in result)) return;
  throw new FenceUsageError(
    resource,
    `The effect on "${resource}" returned a promise; check and effect are one step only if the effect is done when it returns.`,
  );
}

/** Where both are there, the sequencer is worth more than the bare token, but only to a fence that can verify it. */
function carriedBy(bearer: Bearer, wantsSequencer: boolean): unknown {
  if (typeof bearer !== 'object' || bearer === null) return bearer;
  return wantsSequencer && typeof bearer.sequencer === 'string' ? bearer.sequencer : bearer.token;
}

/** Not every object has a text. */
function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return 'without a text';
  }
}

function signedToken(resource: string, text: string, rules: SequencerRules): Token {
  const sequencer = verifySequencer(rules.keys, text, { resource, nowMs: rules.clock?.wallMs() });
  // A promise would be as good as true.
  if ((rules.accepts ?? isOfLock)(sequencer, resource) !== true) {
    throw new InvalidSequencerError(
      resource,
      `it is of lock "${sequencer.lock}" (slot ${sequencer.slot}), which is not the lock of this resource`,
    );
  }
  return sequencer.token;
}

/** Permits have a sequence of tokens each; shared holders have one together, so their slots do not matter. */
function isOfLock({ lock, mode, slot }: Sequencer, resource: string): boolean {
  if (resource === `${lock}#${slot}`) return true;
  return resource === lock && (slot === 0 || mode === 'shared');
}
