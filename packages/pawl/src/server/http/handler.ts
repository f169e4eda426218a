import type { IncomingMessage, ServerResponse } from 'node:http';
import { UnauthenticatedError } from '../../errors.ts';
import { writeError } from '../../protocol/errors.ts';
import type { ServerParts } from '../parts.ts';
import { ANYBODY, type Principal } from '../principal.ts';
import { DASHBOARD_HEADERS, dashboardFile } from './dashboard.ts';
import { Exchange } from './exchange.ts';
import type { Health } from './health.ts';
import { openapi } from './openapi.ts';
import { checkOrigin } from './origin.ts';
import { HttpError, notFound, problemOf } from './problem.ts';
import type { Routes } from './routes.ts';

/** Outside of `/v1` there is nothing to change. */
const READING = ['GET', 'HEAD'];

export interface HttpHandlerOptions {
  readonly parts: ServerParts;
  readonly routes: Routes;
  readonly health: Health;
}

/** Answers every HTTP request, and never throws. */
export class HttpHandler {
  readonly #options: HttpHandlerOptions;

  constructor(options: HttpHandlerOptions) {
    this.#options = options;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A client that goes away while it is answered is no fault of anybody.
    response.on('error', () => {});
    request.on('error', () => {});
    const { parts } = this.#options;
    let exchange: Exchange;
    try {
      exchange = new Exchange(request, response, parts.limits);
    } catch (error) {
      const problem = problemOf(error);
      response.writeHead(problem.status, { 'content-type': 'application/problem+json', connection: 'close' });
      response.end(JSON.stringify(problem));
      return;
    }
    try {
      await this.#serve(exchange);
    } catch (error) {
      this.#refuse(exchange, error);
    }
  }

  async #serve(exchange: Exchange): Promise<void> {
    const { parts, routes } = this.#options;
    const { path, method, request } = exchange;
    if (path[0] === 'v1') {
      checkOrigin(request.headers, parts.authenticator === undefined);
      return routes.serve(this.#principal(request), exchange);
    }
    if (method !== 'GET' && method !== 'HEAD') throw notFound(method, path.join('/'), READING);
    switch (path.join('/')) {
      case 'livez':
        return exchange.text(200, 'text/plain', 'ok\n');
      case 'readyz':
      case 'healthz':
        return this.#tellHealth(exchange);
      case 'openapi.json':
        return exchange.json(200, openapi);
      case 'metrics':
        this.#principal(request);
        return exchange.text(200, 'text/plain; version=0.0.4; charset=utf-8', parts.metrics.text());
      default:
        return this.#dashboard(exchange);
    }
  }

  /** It has no data in it, so it asks for no token; what it reads it asks for as any client does. */
  async #dashboard(exchange: Exchange): Promise<void> {
    const { method, path } = exchange;
    const file = await dashboardFile(path.join('/'));
    if (file === undefined) throw notFound(method, path.join('/'));
    exchange.text(200, file.type, file.text, DASHBOARD_HEADERS);
  }

  /** Why it is not ready is told in the log; a stranger hears only that it is not. */
  async #tellHealth(exchange: Exchange): Promise<void> {
    const { health, parts } = this.#options;
    const problem = await health.problem();
    if (problem === undefined) return exchange.text(200, 'text/plain', 'ok\n');
    parts.log.note('warn', 'notReady', { problem });
    exchange.text(
      503,
      'text/plain',
      problem === 'stopping' ? 'stopping\n' : 'the engine cannot be reached\n',
    );
  }

  #principal(request: IncomingMessage): Principal {
    const { authenticator, log } = this.#options.parts;
    if (authenticator === undefined) return ANYBODY;
    try {
      const principal = authenticator.fromHeader(request.headers.authorization);
      if (principal === undefined) throw new UnauthenticatedError('no token came');
      return principal;
    } catch (error) {
      log.note('warn', 'authenticationFailed', { protocol: 'http' });
      throw error;
    }
  }

  #refuse(exchange: Exchange, error: unknown): void {
    const { metrics, log } = this.#options.parts;
    const { code } = writeError(error instanceof HttpError ? error.cause : error);
    metrics.refused.add(1, code);
    if (code === 'PAWL_SERVER_FAULT') log.fault('http', error);
    exchange.problem(error);
  }
}
