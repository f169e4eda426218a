import { createHash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../clock.ts';
import { nameProblem } from '../core/names.ts';
import { InvalidArgumentError, UnauthenticatedError } from '../errors.ts';
import { type Permission, Principal } from './principal.ts';

/** One bearer token that the server knows, not by itself but by its hash. */
export interface KnownToken {
  /** For the log. */
  readonly name: string;
  /** The SHA-256 of the token in hexadecimal, as {@link hashToken} makes it. */
  readonly sha256: string;
  readonly permissions: readonly Permission[];
  /** Ms since the epoch; never unless set. */
  readonly expiresAtMs?: number | undefined;
}

/** The hash under which a server knows a token. A token should have 128 random bits or more: it is not salted. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token, 'utf8').digest('hex');
}

/** Tells by a bearer token who asks. */
export class Authenticator {
  readonly #clock: Clock;
  readonly #known: readonly { readonly hash: Buffer; readonly principal: Principal }[];

  /** @throws InvalidArgumentError */
  constructor(clock: Clock, tokens: readonly KnownToken[]) {
    this.#clock = clock;
    this.#known = tokens.map((token) => {
      checkToken(token);
      const { name, sha256, permissions, expiresAtMs } = token;
      return { hash: Buffer.from(sha256, 'hex'), principal: new Principal(name, permissions, expiresAtMs) };
    });
  }

  /** @throws UnauthenticatedError where the token is unknown or has expired. */
  authenticate(token: string): Principal {
    const hash = createHash('sha256').update(token, 'utf8').digest();
    // Compared with all, in a time that does not tell how much of which was right.
    let found: Principal | undefined;
    for (const { hash: known, principal } of this.#known) if (timingSafeEqual(hash, known)) found = principal;
    if (found === undefined) throw new UnauthenticatedError('the token is unknown');
    found.checkTime(this.#clock.wallMs());
    return found;
  }

  /**
   * By the Authorization header of a request.
   *
   * @returns `undefined` where there is none.
   * @throws UnauthenticatedError where it is no good.
   */
  fromHeader(header: string | undefined): Principal | undefined {
    if (header === undefined) return undefined;
    const token = /^Bearer +([\x21-\x7e]+)$/i.exec(header)?.[1];
    if (token === undefined) throw new UnauthenticatedError('the Authorization header has no bearer token');
    return this.authenticate(token);
  }
}

const RIGHTS = ['acquire', 'read', 'break', 'admin'];

const TOKEN_FIELDS = ['name', 'sha256', 'permissions', 'expiresAtMs'];

function checkToken(token: KnownToken): void {
  if (typeof token !== 'object' || token === null)
    throw new InvalidArgumentError('auth', 'a list of tokens as pawl token prints them', token);
  // A misspelt field would let a token live for ever.
  for (const field of Object.keys(token))
    if (!TOKEN_FIELDS.includes(field))
      throw new InvalidArgumentError('auth', `made of ${TOKEN_FIELDS.join(', ')}`, field);
  const { name, sha256, permissions, expiresAtMs } = token;
  if (typeof name !== 'string') throw new InvalidArgumentError('auth.name', 'a string', name);
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/i.test(sha256))
    throw new InvalidArgumentError(
      'auth.sha256',
      'the SHA-256 of the token, 64 hexadecimal digits',
      'another',
    );
  const wrong =
    !Array.isArray(permissions) ||
    permissions.some((permission) => {
      const { prefix, rights } = permission ?? {};
      return (
        (prefix !== '' && nameProblem(prefix) !== undefined) ||
        !Array.isArray(rights) ||
        rights.some((right) => !RIGHTS.includes(right))
      );
    });
  if (wrong) {
    const expected = `a list of prefixes with rights out of ${RIGHTS.join(', ')}`;
    throw new InvalidArgumentError('auth.permissions', expected, permissions);
  }
  if (expiresAtMs !== undefined && !Number.isFinite(expiresAtMs))
    throw new InvalidArgumentError('auth.expiresAtMs', 'ms since the epoch', expiresAtMs);
}
