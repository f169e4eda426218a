import type { Clock } from '../../clock.ts';
import type { RequestId } from '../../core/commands.ts';
import { readTraceparent } from '../../protocol/traceparent.ts';
import { type PawlTracer, SERVER_SPAN, TRACEPARENT } from '../../protocol/tracer.ts';
import type { DeskCall } from '../desk.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Log } from '../log.ts';
import { refusalCode } from '../refusal-code.ts';
import { CallSpan } from './call-span.ts';
import { parentContext } from './parent-context.ts';
import { Waits } from './waits.ts';

type Attributes = Record<string, string | number | boolean>;

/** The calls that have spans: those that change something, but for renewals; a `cancel` is the end of its acquire. */
export type TracedCall = Extract<
  DeskCall,
  { method: 'openSession' | 'closeSession' | 'acquire' | 'release' | 'transfer' | 'breakHold' }
>;

/** Where each stands by HTTP. Paths themselves are never shown: the id of a session is as good as the session. */
const ROUTES: Readonly<Record<string, string>> = {
  openSession: '/v1/sessions',
  closeSession: '/v1/sessions/{session}',
  acquire: '/v1/locks/{name}/acquire',
  release: '/v1/locks/{name}/release',
  breakHold: '/v1/locks/{name}/break',
};

/** Makes a span for each request, a child of the client's where the request says which that is. */
export class Tracing {
  readonly waits = new Waits();
  readonly #tracer: PawlTracer;
  readonly #clock: Clock;
  readonly #log: Log;
  #hasFailed = false;

  constructor(tracer: PawlTracer, clock: Clock, log: Log) {
    this.#tracer = tracer;
    this.#clock = clock;
    this.#log = log;
  }

  /** @returns `undefined` where the tracer fails. */
  start(call: TracedCall, exchange: Exchange | undefined): CallSpan | undefined {
    const method = `pawl/${call.method}`;
    const attributes: Attributes = {
      'rpc.system.name': 'pawl',
      'rpc.method': method,
      'network.protocol.name': exchange === undefined ? 'websocket' : 'http',
      ...(exchange === undefined ? {} : httpAttributes(call, exchange)),
      ...attributesOf(call),
    };
    const parent = parentOf(call, exchange);
    try {
      // What is active where messages of a WebSocket arrive belongs to none of them.
      const root = parent === undefined && exchange === undefined;
      const options = { kind: SERVER_SPAN, attributes, ...(root ? { root } : {}) };
      const span = this.#tracer.startSpan(method, options, parent && parentContext(parent));
      const onFailure = (error: unknown) => this.#onFailure(error);
      return new CallSpan({ span, clock: this.#clock, isHttp: exchange !== undefined, onFailure });
    } catch (error) {
      this.#onFailure(error);
      return undefined;
    }
  }

  /** The wait of an acquire ended with an error that no news tell of. */
  gaveUp(id: RequestId, error: unknown): void {
    this.waits.end(id, { ...endOf(error), outcome: 'gaveUp' });
  }

  /** Once: a tracer that fails at one span fails at many. */
  #onFailure(error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const problem = error instanceof Error ? error.message : 'what it throws is no Error';
    this.#log.note('warn', 'tracerFailed', { problem });
  }
}

/** How a request ends that is answered with an error. */
export function endOf(error: unknown): { readonly code: string; readonly error: unknown } {
  return { code: refusalCode(error) ?? 'PAWL_SERVER_FAULT', error };
}

function parentOf(call: TracedCall, exchange: Exchange | undefined) {
  const said = readTraceparent(exchange?.request.headers[TRACEPARENT] ?? call.traceparent);
  if (said !== undefined || call.method !== 'acquire') return said;
  return readTraceparent(call.options.owner[TRACEPARENT]);
}

function httpAttributes({ method }: TracedCall, exchange: Exchange): Attributes {
  const route = ROUTES[method];
  return { 'http.request.method': exchange.method, ...(route === undefined ? {} : { 'http.route': route }) };
}

function attributesOf(call: TracedCall): Attributes {
  switch (call.method) {
    case 'openSession':
      return { 'pawl.ttl_ms': call.ttlMs };
    case 'closeSession':
      return {};
    case 'acquire': {
      const modes = new Set(call.locks.map(({ mode }) => mode));
      return {
        'pawl.locks': namesOf(call.locks),
        'pawl.mode': [...modes].join(' '),
        'pawl.wait': call.options.wait,
      };
    }
    case 'breakHold':
      return { 'pawl.locks': call.name, 'pawl.token': call.token.toString(), 'pawl.reason': call.reason };
    default:
      return {
        'pawl.locks': namesOf(call.grants),
        'pawl.token': call.grants.map(({ token }) => token.toString()).join(' '),
      };
  }
}

function namesOf(locks: readonly { readonly name: string }[]): string {
  return locks.map(({ name }) => name).join(' ');
}
