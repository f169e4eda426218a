import type { AskedLock } from '../core/commands.ts';
import { isPawlError } from '../errors.ts';
import type { LockService } from '../node/service.ts';
import type { Hold } from './hold.ts';
import type { CheckedSettings } from './options.ts';

/** What is called on a tracer: that of `@opentelemetry/api` has it. Typed by structure, so that nobody needs the package. */
export interface PawlTracer {
  startSpan(name: string, options?: { attributes?: Record<string, string | number | boolean> }): PawlSpan;
}

export interface PawlSpan {
  spanContext(): SpanContext;
  setAttribute(key: string, value: string | number | boolean): unknown;
  /** Since version 1.9 of the API; without it waits are not linked to whom they waited for. */
  addLink?(link: { context: SpanContext }): unknown;
  recordException(error: Error): unknown;
  setStatus(status: { code: number; message?: string }): unknown;
  end(): unknown;
}

interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}

/** `SpanStatusCode.ERROR`. */
const ERROR = 2;
/** The owner's field that others see, as the W3C's Trace Context writes it. */
const TRACEPARENT = 'traceparent';

/** A span for each acquire, linked to the traces of those it waited for: they show theirs to whoever looks at the lock. */
export class Tracing {
  readonly #tracer: PawlTracer;
  readonly #service: LockService;

  constructor(tracer: PawlTracer, service: LockService) {
    this.#tracer = tracer;
    this.#service = service;
  }

  /** Runs an acquire within a span. */
  async acquire(
    locks: readonly AskedLock[],
    settings: CheckedSettings,
    run: (settings: CheckedSettings) => Promise<Hold>,
  ): Promise<Hold> {
    const names = locks.map(({ name }) => name);
    const attributes = {
      'pawl.locks': names.join(' '),
      'pawl.mode': settings.mode,
      'pawl.ttl_ms': settings.ttlMs,
    };
    const span = this.#tracer.startSpan('pawl.acquire', { attributes });
    const owner = { [TRACEPARENT]: written(span.spanContext()), ...settings.owner };
    const links: Promise<void>[] = [];
    const onQueued = () => {
      span.setAttribute('pawl.queued', true);
      links.push(...names.map((name) => this.#linkHolders(span, name)));
    };
    try {
      const hold = await run({ ...settings, owner, onQueued });
      span.setAttribute('pawl.token', hold.first.token.toString());
      return hold;
    } catch (error) {
      if (error instanceof Error) span.recordException(error);
      span.setStatus({ code: ERROR, message: isPawlError(error) ? error.code : String(error) });
      throw error;
    } finally {
      await Promise.all(links);
      span.end();
    }
  }

  async #linkHolders(span: PawlSpan, name: string): Promise<void> {
    try {
      const { holders } = await this.#service.inspect(name);
      for (const { owner } of holders) {
        const context = read(owner[TRACEPARENT]);
        if (context !== undefined) span.addLink?.({ context });
      }
    } catch {
      // A trace without a link is no reason to fail an acquire.
    }
  }
}

function written({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

function read(traceparent: string | undefined): SpanContext | undefined {
  const [, traceId, spanId, flags] =
    /^00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/.exec(traceparent ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) };
}
