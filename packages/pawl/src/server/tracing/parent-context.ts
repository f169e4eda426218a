import type { SpanContext } from '../../protocol/traceparent.ts';
import type { TraceContext } from '../../protocol/tracer.ts';

/** Where the API keeps the span of a context: it makes its keys by name, so that copies of the package understand each other. */
const SPAN = Symbol.for('OpenTelemetry Context Key SPAN');

/** A context whose span is another process's, for a tracer to start a child of it. */
export function parentContext(span: SpanContext): TraceContext {
  const spanContext = { ...span, isRemote: true };
  const parent = { spanContext: () => spanContext, isRecording: () => false };
  return new PlainContext(new Map<symbol, unknown>([[SPAN, parent]]));
}

/** As the API's own: never changed, only copied. */
class PlainContext implements TraceContext {
  readonly #values: ReadonlyMap<symbol, unknown>;

  constructor(values: ReadonlyMap<symbol, unknown>) {
    this.#values = values;
  }

  getValue(key: symbol): unknown {
    return this.#values.get(key);
  }

  setValue(key: symbol, value: unknown): TraceContext {
    return new PlainContext(new Map(this.#values).set(key, value));
  }

  deleteValue(key: symbol): TraceContext {
    const values = new Map(this.#values);
    values.delete(key);
    return new PlainContext(values);
  }
}
