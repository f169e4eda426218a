import type { Duplex } from 'node:stream';
import { InvalidArgumentError, LimitError } from '../../errors.ts';
import type { Limits } from '../limits.ts';
import { HttpError, problemOf, problemText } from './problem.ts';

/**
 * Answers what is no request of HTTP, or one whose head is too long or does not come, and closes the connection.
 *
 * @param isAnswered whether an answer has begun on this connection, which must not be broken into.
 */
export function refuseMalformed(error: Error, socket: Duplex, limits: Limits, isAnswered: boolean): void {
  if (!socket.writable || isAnswered) socket.destroy();
  else socket.end(problemText(problemOf(errorOf(error, limits))));
}

function errorOf(error: Error, { headerBytes }: Limits): HttpError {
  const code = 'code' in error ? String(error.code) : '';
  if (code === 'HPE_HEADER_OVERFLOW')
    return new HttpError(431, new LimitError('headerBytes', headerBytes, 'send shorter headers'));
  const expected = new InvalidArgumentError('request', 'one of HTTP/1.1, sent as a whole', code);
  return new HttpError(code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400, expected);
}
