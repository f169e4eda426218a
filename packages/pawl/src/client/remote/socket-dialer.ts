import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { type ClientOptions, WebSocket } from 'ws';
import {
  EngineUnavailableError,
  ForbiddenError,
  InvalidArgumentError,
  StoreUnusableError,
  UnauthenticatedError,
} from '../../errors.ts';
import { SocketTransport } from '../../protocol/socket-transport.ts';
import { SESSION_PATH, SUBPROTOCOL, type Transport } from '../../protocol/transport.ts';
import type { Dialer } from './dialer.ts';
import type { TlsSettings } from './tls.ts';

/** So long a handshake may take, in ms. */
const HANDSHAKE_LIMIT_MS = 3000;
/** So long a server may take to say goodbye, in ms: the process of a client that was closed waits for that. */
const FAREWELL_LIMIT_MS = 1000;
/** The largest frame that a server may send, in bytes: the state of a lock with as many holders as there can be. */
const FRAME_BYTES = 16 * 1024 * 1024;

/** Connections over WebSockets. */
export class SocketDialer implements Dialer {
  readonly #token: string | undefined;
  readonly #tls: TlsSettings;

  /** @throws InvalidArgumentError, StoreUnusableError */
  constructor(token: string | undefined, tls: TlsSettings = {}) {
    this.#token = token;
    const given = Object.entries(tls).filter(([, text]) => text !== undefined);
    this.#tls = Object.fromEntries(given.map(([what, text]) => [what, readPem(what, text)]));
    try {
      createSecureContext(this.#tls);
    } catch (error) {
      // None is shown: one of them is a secret.
      const said = error instanceof Error ? error.message : 'they cannot be read';
      throw new InvalidArgumentError('tls', 'certificates and a key in PEM', said);
    }
  }

  dial(url: string): Promise<Transport> {
    const { promise, resolve, reject } = Promise.withResolvers<Transport>();
    const options: ClientOptions & { closeTimeout: number } = {
      ...this.#tls,
      ...(this.#token === undefined ? {} : { headers: { authorization: `Bearer ${this.#token}` } }),
      handshakeTimeout: HANDSHAKE_LIMIT_MS,
      maxPayload: FRAME_BYTES,
      perMessageDeflate: false,
      followRedirects: false,
      closeTimeout: FAREWELL_LIMIT_MS,
    };
    const socket = new WebSocket(url + SESSION_PATH, SUBPROTOCOL, options);
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
    socket.on('error', (cause: NodeJS.ErrnoException) => {
      // Where a name has several addresses, none of which answers, the message is empty.
      const said = cause.message || cause.code;
      reject(
        new EngineUnavailableError(`The server at ${url} cannot be reached: ${said}.`, 'definite', { cause }),
      );
    });
    return promise;
  }
}

function refusal(status: number): Error {
  if (status === 401) return new UnauthenticatedError('it answered 401');
  if (status === 403) return new ForbiddenError('connect', 'to this server');
  return new EngineUnavailableError(`The server answered the handshake with status ${status}.`, 'definite');
}

function readPem(what: string, text: string): string {
  if (text.includes('-----BEGIN')) return text;
  try {
    return readFileSync(text, 'utf8');
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new StoreUnusableError(`The file of tls.${what}, ${text},`, `it cannot be read: ${said}`, {
      cause,
    });
  }
}
