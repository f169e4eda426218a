import type { PawlSpan, PawlTracer } from '../../src/client/tracing.ts';

type Attributes = Record<string, string | number | boolean>;
type StartSpan = PawlTracer['startSpan'];

interface Context {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}

/** A span as an exporter would get it. */
export interface RecordedSpan {
  readonly name: string;
  readonly kind: number | undefined;
  readonly root: boolean | undefined;
  readonly context: Context;
  readonly parent: (Context & { readonly isRemote?: boolean }) | undefined;
  readonly attributes: Attributes;
  readonly events: { readonly name: string; readonly attributes: Attributes | undefined }[];
  readonly exceptions: Error[];
  status: { readonly code: number; readonly message?: string } | undefined;
  /** How often it was ended, which must be once. */
  ends: number;
}

/** The name by which the API keeps the span of a context. */
const SPAN_KEY = Symbol.for('OpenTelemetry Context Key SPAN');

/** Has what the tracers of `@opentelemetry/api` have, finds the parent where they do, and keeps what its spans are told. */
export class RecordingTracer implements PawlTracer {
  readonly spans: RecordedSpan[] = [];
  readonly #mark: string;

  /** @param mark one hexadecimal digit in all ids, so that those of two tracers differ. */
  constructor(mark: string) {
    this.#mark = mark;
  }

  startSpan(...[name, options, context]: Parameters<StartSpan>): PawlSpan {
    const id = String(this.spans.length + 1);
    const holder = context?.getValue(SPAN_KEY) as { spanContext(): Context } | undefined;
    const parent = options?.root ? undefined : holder?.spanContext();
    const span: RecordedSpan = {
      name,
      kind: options?.kind,
      root: options?.root,
      context: {
        traceId: parent?.traceId ?? `${this.#mark}${id.padStart(31, '0')}`,
        spanId: `${this.#mark}${id.padStart(15, '0')}`,
        traceFlags: 1,
      },
      parent,
      attributes: { ...options?.attributes },
      events: [],
      exceptions: [],
      status: undefined,
      ends: 0,
    };
    this.spans.push(span);
    const onlyBeforeItsEnd = (tell: () => void) => {
      if (span.ends > 0) throw new Error(`${name} was told something after its end`);
      tell();
    };
    return {
      spanContext: () => span.context,
      setAttribute: (key, value) =>
        onlyBeforeItsEnd(() => {
          span.attributes[key] = value;
        }),
      addEvent: (event, attributes) => onlyBeforeItsEnd(() => span.events.push({ name: event, attributes })),
      recordException: (error) => onlyBeforeItsEnd(() => span.exceptions.push(error)),
      setStatus: (status) =>
        onlyBeforeItsEnd(() => {
          span.status = status;
        }),
      end: () => {
        span.ends += 1;
      },
    };
  }

  /** The spans of this name, in the order in which they began. */
  named(name: string): RecordedSpan[] {
    return this.spans.filter((span) => span.name === name);
  }

  get allEndedOnce(): boolean {
    return this.spans.every(({ ends }) => ends === 1);
  }
}

/** What a tracer can do wrong: throw at one of the calls, or give no span at all. */
export const FAILURES = [
  'startSpan',
  'noSpan',
  'setAttribute',
  'addEvent',
  'recordException',
  'setStatus',
  'end',
] as const;

/** A tracer that fails so, and that counts how often it was asked for a span. */
export function failingTracer(failure: (typeof FAILURES)[number]): PawlTracer & { readonly asked: number } {
  const fail = (call: string) => {
    if (call === failure) throw new Error(`${call} failed`);
  };
  let asked = 0;
  return {
    get asked() {
      return asked;
    },
    startSpan: () => {
      asked += 1;
      fail('startSpan');
      if (failure === 'noSpan') return undefined as unknown as PawlSpan;
      return {
        spanContext: () => ({ traceId: 'a'.repeat(32), spanId: 'a'.repeat(16), traceFlags: 1 }),
        setAttribute: () => fail('setAttribute'),
        addEvent: () => fail('addEvent'),
        recordException: () => fail('recordException'),
        setStatus: () => fail('setStatus'),
        end: () => fail('end'),
      };
    },
  };
}
