import type { SpanContext } from './traceparent.ts';

/* What is called on a tracer and its spans: those of `@opentelemetry/api` have it. Typed by structure, so that nobody needs the package. */

type Attributes = Record<string, string | number | boolean>;

export interface PawlTracer {
  /** @param context where the parent of the span stands, if not in the active one; as the API's `Context`. */
  startSpan(
    name: string,
    options?: { kind?: number; root?: boolean; attributes?: Attributes },
    context?: TraceContext,
  ): PawlSpan;
}

export interface PawlSpan {
  spanContext(): SpanContext;
  setAttribute(key: string, value: string | number | boolean): unknown;
  /** Without it nothing tells at which moment of its span an acquire came to stand in a queue. */
  addEvent?(name: string, attributes?: Attributes): unknown;
  /** Since version 1.9 of the API; without it waits are not linked to whom they waited for. */
  addLink?(link: { context: SpanContext }): unknown;
  recordException(error: Error): unknown;
  setStatus(status: { code: number; message?: string }): unknown;
  end(): unknown;
}

export interface TraceContext {
  getValue(key: symbol): unknown;
  setValue(key: symbol, value: unknown): TraceContext;
  deleteValue(key: symbol): TraceContext;
}

/** `SpanKind.SERVER`. */
export const SERVER_SPAN = 1;
/** `SpanStatusCode.ERROR`. */
export const ERROR_STATUS = 2;
/** The field of an owner that others see, of a message and of an HTTP request. */
export const TRACEPARENT = 'traceparent';
