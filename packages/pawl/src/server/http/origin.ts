import { isIP } from 'node:net';
import { ForbiddenError } from '../../errors.ts';

/** Whether `host` (without port or brackets) is this machine itself. */
export function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true;
  return isIP(host) === 4 && host.startsWith('127.');
}

/** What of a request's head says where it comes from. */
interface Whence {
  readonly origin?: string | undefined;
  readonly host?: string | undefined;
  /** Only browsers send it, also where they leave the origin out. */
  readonly 'sec-fetch-site'?: string | string[] | undefined;
}

/**
 * Keeps web pages away, which a browser on this machine would let talk to a server that asks for no token: a page of another site,
 * and one whose own name was made to lead to this machine. An address leads nowhere else.
 *
 * @throws ForbiddenError
 */
export function checkOrigin(headers: Whence, open: boolean): void {
  const { origin, host = '', 'sec-fetch-site': site } = headers;
  if (origin !== undefined && (!URL.canParse(origin) || new URL(origin).host !== host))
    throw new ForbiddenError('ask', 'from a page of another site');
  if (!open || (origin === undefined && site === undefined)) return;
  const name = host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1');
  if (!isLoopback(name) && isIP(name) === 0) throw new ForbiddenError('ask', `by the name of ${name}`);
}
