import { isIP } from 'node:net';
import { ForbiddenError } from '../../errors.ts';

/** Whether `host` (without port or brackets) is this machine itself. */
export function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true;
  return isIP(host) === 4 && host.startsWith('127.');
}

/**
 * Keeps web pages away, which a browser on this machine would let talk to a server that asks for no token: a page of another site,
 * and one whose own name leads to this machine.
 *
 * @throws ForbiddenError
 */
export function checkOrigin(
  headers: { origin?: string | undefined; host?: string | undefined },
  open: boolean,
): void {
  const { origin, host = '' } = headers;
  if (origin !== undefined && (!URL.canParse(origin) || new URL(origin).host !== host))
    throw new ForbiddenError('ask', 'from a page of another site');
  if (!open) return;
  const name = host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1');
  if (origin !== undefined && !isLoopback(name)) throw new ForbiddenError('ask', `by the name of ${name}`);
}
