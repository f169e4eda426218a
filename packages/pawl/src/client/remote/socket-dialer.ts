import { readFileSync } from 'node:fs';
import { WebSocket } from 'ws';
import { EngineUnavailableError, ForbiddenError, UnauthenticatedError } from '../../errors.ts';
import { SocketTransport } from '../../protocol/socket-transport.ts';
import { SESSION_PATH, SUBPROTOCOL, type Transport } from '../../protocol/transport.ts';
import type { Dialer } from './dialer.ts';
import type { TlsSettings } from './tls.ts';

/** So long a handshake may take, in ms. */
const HANDSHAKE_LIMIT_MS = 3000;
/** The largest frame that a server may send, in bytes: the state of a lock with as many holders as there can be. */
const FRAME_BYTES = 16 * 1024 * 1024;

/** Connections over WebSockets. */
export class SocketDialer implements Dialer {
  readonly #token: string | undefined;
  readonly #tls: TlsSettings;

  constructor(token: string | undefined, tls: TlsSettings = {}) {
    this.#token = token;
    this.#tls = Object.fromEntries(Object.entries(tls).map(([what, text]) => [what, readPem(text)]));
  }

  dial(url: string): Promise<Transport> {
    const { promise, resolve, reject } = Promise.withResolvers<Transport>();
    const socket = new WebSocket(url + SESSION_PATH, SUBPROTOCOL, {
      ...this.#tls,
      ...(this.#token === undefined ? {} : { headers: { authorization: `Bearer ${this.#token}` } }),
      handshakeTimeout: HANDSHAKE_LIMIT_MS,
      maxPayload: FRAME_BYTES,
      perMessageDeflate: false,
      followRedirects: false,
    });
    socket.on('upgrade', (response) => {
      // Whoever waits keeps the process running; an idle connection does not.
      response.socket.unref();
    });
    // Made before the socket opens: the first frame may come in the same piece as the handshake.
    const transport = new SocketTransport(socket);
    socket.on('open', () => resolve(transport));
    socket.on('unexpected-response', (request, response) => {
      response.resume();
      request.destroy();
      reject(refusal(response.statusCode ?? 0));
    });
    socket.on('error', (cause) =>
      reject(new EngineUnavailableError(`The server at ${url} cannot be reached.`, 'definite', { cause })),
    );
    return promise;
  }
}

function refusal(status: number): Error {
  if (status === 401) return new UnauthenticatedError('it answered 401');
  if (status === 403) return new ForbiddenError('connect', 'to this server');
  return new EngineUnavailableError(`The server answered the handshake with status ${status}.`, 'definite');
}

function readPem(text: string): string {
  return text.includes('-----BEGIN') ? text : readFileSync(text, 'utf8');
}
