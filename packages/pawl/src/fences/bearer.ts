import { isToken, type Token } from '../token.ts';
import { FenceUsageError, InvalidTokenError, MissingTokenError } from './errors.ts';

/** What carries a token: a lease of any lock, or the bare token. `null` and `undefined` are refused, not let through. */
export type Bearer = Token | { readonly token: Token } | null | undefined;

/** @throws MissingTokenError, InvalidTokenError */
export function tokenOf(resource: string, bearer: Bearer): Token {
  const token: unknown = typeof bearer === 'object' && bearer !== null ? bearer.token : bearer;
  if (token === undefined || token === null) throw new MissingTokenError(resource);
  if (!isToken(token)) throw new InvalidTokenError(resource, `${typeof token} ${String(token)}`);
  return token;
}

/** @throws FenceUsageError where `resource` is no name. */
export function checkResource(resource: unknown): asserts resource is string {
  if (typeof resource === 'string' && resource !== '' && resource.isWellFormed()) return;
  throw new FenceUsageError(
    String(resource),
    'The name of a fenced resource must be a string that is not empty.',
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
