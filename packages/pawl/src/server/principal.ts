import { ForbiddenError, UnauthenticatedError } from '../errors.ts';

/**
 * What a token allows: `acquire`: to acquire, release and hand over; `read`: to inspect, list and watch; `break`: to take a
 * lock away from its holder; `admin`: all of it.
 */
export type Right = 'acquire' | 'read' | 'break' | 'admin';

/** Rights on all locks whose name starts with `prefix` (`''` for all locks). */
export interface Permission {
  readonly prefix: string;
  readonly rights: readonly Right[];
}

/** Who asks, and what they may do. */
export class Principal {
  /** For the log. */
  readonly name: string;
  readonly #permissions: readonly Permission[];
  readonly #expiresAtMs: number;

  /** @param expiresAtMs ms since the epoch */
  constructor(name: string, permissions: readonly Permission[], expiresAtMs = Number.POSITIVE_INFINITY) {
    this.name = name;
    this.#permissions = permissions;
    this.#expiresAtMs = expiresAtMs;
  }

  /** @throws UnauthenticatedError once the token has expired. */
  checkTime(wallMs: number): void {
    if (wallMs >= this.#expiresAtMs) throw new UnauthenticatedError('the token has expired');
  }

  /** @throws ForbiddenError */
  require(right: Right, name: string): void {
    if (!this.#may(right, name)) throw new ForbiddenError(right, `lock ${JSON.stringify(name)}`);
  }

  /** @throws ForbiddenError where the right does not cover all names that start with `prefix`. */
  requireAll(right: Right, prefix: string): void {
    if (!this.#may(right, prefix))
      throw new ForbiddenError(right, `all locks below ${JSON.stringify(prefix)}`);
  }

  #may(right: Right, name: string): boolean {
    return this.#permissions.some(
      ({ prefix, rights }) => name.startsWith(prefix) && (rights.includes(right) || rights.includes('admin')),
    );
  }
}

/** Whoever asks a server without authentication, or shows a client certificate. */
export const ANYBODY = new Principal('anybody', [{ prefix: '', rights: ['admin'] }]);
