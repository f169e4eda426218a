import { type Clock, systemClock } from '../../clock.ts';
import { EngineUnavailableError, InvalidArgumentError, isPawlError } from '../../errors.ts';
import { Pawl } from '../pawl.ts';
import { within } from '../settle.ts';
import type { PawlTracer } from '../tracing.ts';
import { RemoteService } from './remote-service.ts';
import type { TlsSettings } from './tls.ts';

/** So long it may take until a server greets, in ms. */
const CONNECT_LIMIT_MS = 5000;

export interface ConnectOptions {
  /** A bearer token, where the server asks for one. */
  readonly token?: string;
  readonly tls?: TlsSettings;
  /** Makes a span for each acquire; such as `trace.getTracer('pawl')` of `@opentelemetry/api`. */
  readonly tracer?: PawlTracer;
  /** The system's clock unless set. */
  readonly clock?: Clock;
}

/**
 * Connects to a server (`pawl serve`). What it returns is used like that of `open`. A connection that drops is made anew, to
 * the next of the servers, and costs no lease as long as that takes less than the rest of the TTL.
 *
 * @param urls of servers over one store, such as `http://127.0.0.1:7295`; `https`, `ws` and `wss` will do as well.
 * @throws EngineUnavailableError where no server can be reached within 5 s; UnauthenticatedError, ForbiddenError,
 *   InvalidArgumentError
 */
export async function connect(urls: string | readonly string[], options: ConnectOptions = {}): Promise<Pawl> {
  const list = (Array.isArray(urls) ? urls : [urls]).map(socketUrl);
  if (list.length === 0) throw new InvalidArgumentError('urls', 'at least one URL of a server', urls);
  const { token, tls, clock = systemClock } = options;
  if (token !== undefined && !/^[\x21-\x7e]{1,4096}$/.test(token))
    throw new InvalidArgumentError('token', 'a bearer token: up to 4096 visible ASCII characters', 'another');
  // Loaded only here: whoever uses an engine of their own has no need of it.
  const { SocketDialer } = await import('./socket-dialer.ts');
  const service = new RemoteService({ urls: list, dialer: new SocketDialer(token, tls), clock });
  try {
    const greeted = await within(clock, CONNECT_LIMIT_MS, service.ready());
    if (greeted !== undefined) return new Pawl(service, { clock, tracer: options.tracer });
    const { lastFailure: cause } = service;
    const why = isPawlError(cause) ? ` ${cause.message}` : '';
    throw new EngineUnavailableError(
      `No server could be reached within ${CONNECT_LIMIT_MS} ms at ${list.join(', ')}.${why}`,
      'definite',
      { cause },
    );
  } catch (error) {
    await service.close();
    throw error;
  }
}

const EXPECTED = 'the URL of a server, such as http://127.0.0.1:7295';

/** @throws InvalidArgumentError, which does not repeat a password */
function socketUrl(text: string): string {
  const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : undefined;
  const scheme = { 'http:': 'ws:', 'https:': 'wss:', 'ws:': 'ws:', 'wss:': 'wss:' }[url?.protocol ?? ''];
  const hasCredentials = url !== undefined && url.username + url.password !== '';
  if (url === undefined || scheme === undefined || hasCredentials || url.search !== '' || url.hash !== '')
    throw new InvalidArgumentError('urls', EXPECTED, hasCredentials ? 'one with a password' : text);
  return `${scheme}//${url.host}${url.pathname.replace(/\/+$/, '')}`;
}
