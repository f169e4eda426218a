import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Timer } from '../clock.ts';
import { InvalidArgumentError, UnauthenticatedError } from '../errors.ts';
import { SocketTransport } from '../protocol/socket-transport.ts';
import { CLOSE_CODES, SESSION_PATH, SUBPROTOCOL } from '../protocol/transport.ts';
import { Connection } from './connection.ts';
import { checkOrigin } from './http/origin.ts';
import { HttpError, notFound, problemOf, problemText } from './http/problem.ts';
import type { ServerParts } from './parts.ts';
import { ANYBODY, type Principal } from './principal.ts';

/** So often each client is asked for a sign of life, in ms; one that gave none since the last time is cut off. */
const BEAT_EVERY_MS = 15_000;

/** The clients that are connected by WebSocket. */
export class WebSockets {
  readonly #parts: ServerParts;
  readonly #server: WebSocketServer;
  readonly #connections = new Set<Connection>();
  readonly #silent = new WeakSet<WebSocket>();
  readonly #onEmpty = new Set<() => void>();
  #beat: Timer | undefined;
  #stopping = false;

  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.#server = new WebSocketServer({
      noServer: true,
      maxPayload: parts.limits.frameBytes,
      perMessageDeflate: false,
      handleProtocols: (offered) => (offered.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
    });
    this.#server.on('wsClientError', (error, socket) => {
      const expected = new InvalidArgumentError(
        'Upgrade',
        'a handshake of WebSocket, version 13',
        error.message,
      );
      this.#refuse(socket, new HttpError(400, expected));
    });
    this.#armBeat();
  }

  /** Takes an HTTP connection that wants to become a WebSocket. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => {});
    try {
      const principal = this.#admit(request);
      this.#server.handleUpgrade(request, socket, head, (webSocket) => this.#welcome(webSocket, principal));
    } catch (error) {
      this.#refuse(socket, error);
    }
  }

  /** Tells all to go on elsewhere, and takes no new ones. */
  sendAway(): void {
    this.#stopping = true;
    for (const connection of this.#connections) connection.sendAway();
  }

  /** Resolves once all have gone. */
  empty(): Promise<void> {
    if (this.#connections.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onEmpty.add(resolve));
  }

  /** Closes what is left. */
  close(): void {
    this.#beat?.cancel();
    for (const connection of this.#connections) connection.close(CLOSE_CODES.goingAway, 'the server stops');
    this.#server.close();
  }

  cut(): void {
    for (const webSocket of this.#server.clients) webSocket.terminate();
  }

  #refuse(socket: Duplex, error: unknown): void {
    const problem = problemOf(error);
    this.#parts.metrics.refused.add(1, problem.code);
    // No limit of HTTP is kept on what wanted to become something else: one that does not close would stay for ever.
    socket.once('finish', () => socket.destroy());
    socket.end(problemText(problem));
  }

  #admit(request: IncomingMessage): Principal | undefined {
    const { authenticator, log } = this.#parts;
    const path = request.url?.split('?')[0] ?? '';
    if (path !== SESSION_PATH) throw notFound('GET', path);
    checkOrigin(request.headers, authenticator === undefined);
    if (authenticator === undefined) return ANYBODY;
    try {
      return authenticator.fromHeader(request.headers.authorization);
    } catch (error) {
      if (error instanceof UnauthenticatedError)
        log.note('warn', 'authenticationFailed', { protocol: 'websocket' });
      throw error;
    }
  }

  #welcome(webSocket: WebSocket, principal: Principal | undefined): void {
    if (this.#stopping) {
      webSocket.close(CLOSE_CODES.goingAway, 'the server stops');
      return;
    }
    const alive = () => this.#silent.delete(webSocket);
    webSocket.on('pong', alive);
    webSocket.on('message', alive);
    const { metrics, log } = this.#parts;
    const connection = new Connection(this.#parts, new SocketTransport(webSocket), principal, (closed) => {
      this.#connections.delete(closed);
      metrics.connections = this.#connections.size;
      log.note('debug', 'connectionClosed');
      if (this.#connections.size > 0) return;
      for (const resolve of this.#onEmpty) resolve();
      this.#onEmpty.clear();
    });
    this.#connections.add(connection);
    metrics.connections = this.#connections.size;
    log.note('debug', 'connectionOpened', { principal: principal?.name });
  }

  #armBeat(): void {
    const beat = () => {
      for (const webSocket of this.#server.clients) {
        // One that is paused cannot be heard, and has a limit of its own.
        if (webSocket.isPaused) continue;
        if (this.#silent.has(webSocket)) webSocket.terminate();
        else if (webSocket.readyState === webSocket.OPEN) {
          this.#silent.add(webSocket);
          webSocket.ping();
        }
      }
      this.#armBeat();
    };
    this.#beat = this.#parts.clock.setTimer(BEAT_EVERY_MS, beat, { keepProcess: false });
  }
}
