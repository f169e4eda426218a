import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { sleep } from '../clock.ts';
import { HttpHandler } from './http/handler.ts';
import { Health } from './http/health.ts';
import { LongPolls } from './http/long-polls.ts';
import { refuseMalformed } from './http/malformed.ts';
import { Routes } from './http/routes.ts';
import { Watches } from './http/watches.ts';
import { type CheckedOptions, checkOptions, type ServeOptions } from './options.ts';
import { serverParts } from './parts.ts';
import { renewSessions } from './renewal.ts';
import { WebSockets } from './web-sockets.ts';

/** A server that runs. */
export interface PawlServer extends AsyncDisposable {
  /** Where clients reach it, such as `http://127.0.0.1:7295`. */
  readonly url: string;
  readonly port: number;
  /**
   * Stops without losing a grant: takes no new connections, sends clients elsewhere, finishes what is under way for `graceMs` at
   * most, and cuts off who is left. Sessions live on at the engine, for their clients to go on with. The engine stays open.
   */
  close(): Promise<void>;
}

/** Answers still on their way to clients that are told to close get so long, in ms. */
const FAREWELL_MS = 100;

/**
 * Serves the locks of `engine` to clients of any language: WebSocket for `connect`, and HTTP with JSON. Any number of servers
 * may share one store, and a client's session may move between them.
 *
 * @throws InvalidArgumentError: also where others could reach it without authentication; EngineUnavailableError; and what
 *   listening throws, such as an error with code `EADDRINUSE`.
 */
export async function serve(options: ServeOptions): Promise<PawlServer> {
  const checked = checkOptions(options);
  const { engine, clock, host, port, log, graceMs } = checked;
  const renewed = checked.renewSessions ? await renewSessions(engine) : 0;
  const parts = serverParts(checked);
  const health = new Health(engine, clock);
  const polls = new LongPolls(parts);
  const watches = new Watches(parts);
  const routes = new Routes({ parts, polls, watches });
  const handler = new HttpHandler({ parts, routes, health });
  const webSockets = new WebSockets(parts);
  /** The last answer on each connection: one that has begun must not be broken into. */
  const answers = new WeakMap<Duplex, ServerResponse>();
  const listener: RequestListener = (request, response) => {
    answers.set(request.socket, response);
    response.once('finish', () => answers.delete(request.socket));
    void handler.handle(request, response);
  };
  const server = httpServer(checked, listener);
  // An expectation that nobody knows is passed over, as HTTP allows: so the answer is one of this protocol.
  server.on('checkExpectation', listener);
  server.on('clientError', (error, socket) =>
    refuseMalformed(error, socket, checked.limits, answers.get(socket)?.headersSent === true),
  );
  server.on('upgrade', (request, socket, head) => webSockets.upgrade(request, socket, head));
  server.on('drop', () => log.note('warn', 'connectionRefused', { connections: checked.limits.connections }));

  const abandon = async () => {
    webSockets.close();
    await parts.close();
  };
  const address = await listen(server, port, host).catch(async (error: unknown) => {
    await abandon();
    throw error;
  });
  const scheme = checked.tls === undefined ? 'http' : 'https';
  const url = `${scheme}://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
  log.note('info', 'listening', { url, engine: engine.guarantees.engine, renewed });

  let closing: Promise<void> | undefined;
  const close = async () => {
    log.note('info', 'stopping');
    health.stopping();
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    webSockets.sendAway();
    polls.close();
    watches.close();
    server.closeIdleConnections();
    await Promise.race([
      Promise.all([webSockets.empty(), closed]),
      sleep(clock, graceMs, { keepProcess: false }),
    ]);
    webSockets.close();
    await Promise.race([closed, sleep(clock, FAREWELL_MS)]);
    webSockets.cut();
    server.closeAllConnections();
    await closed;
    await parts.close();
    log.note('info', 'stopped');
  };
  const closeOnce = () => {
    closing ??= close();
    return closing;
  };
  return { url, port: address.port, close: closeOnce, [Symbol.asyncDispose]: closeOnce };
}

function httpServer({ tls, limits }: CheckedOptions, listener: RequestListener): Server {
  const settings = {
    maxHeaderSize: limits.headerBytes,
    // It is missed where the answer can say so.
    requireHostHeader: false,
    headersTimeout: 10_000,
    // Any other protocol that is offered, as some clients offer HTTP/2, is passed over and the request answered; from Node 24.9 on.
    shouldUpgradeCallback: ({ headers }: IncomingMessage) => headers.upgrade?.toLowerCase() === 'websocket',
    // How long a request may take to arrive; its answer may take longer.
    requestTimeout: 30_000,
    keepAliveTimeout: 30_000,
    noDelay: true,
  };
  const server =
    tls === undefined
      ? createServer(settings, listener)
      : createTlsServer(
          {
            ...settings,
            minVersion: 'TLSv1.2',
            cert: tls.cert,
            key: tls.key,
            ...(tls.clientCa === undefined
              ? {}
              : { ca: tls.clientCa, requestCert: true, rejectUnauthorized: true }),
          },
          listener,
        );
  server.maxConnections = limits.connections;
  return server;
}

function listen(server: Server, port: number, host: string): Promise<AddressInfo> {
  const { promise, resolve, reject } = Promise.withResolvers<AddressInfo>();
  server.once('error', reject);
  server.listen(port, host, () => {
    server.off('error', reject);
    resolve(server.address() as AddressInfo);
  });
  return promise;
}
