import type { AskedLock } from '../core/commands.ts';
import type { Owner } from '../core/records.ts';
import { isPawlError } from '../errors.ts';
import type { LockService } from '../node/service.ts';
import { OWNER_BYTES } from '../protocol/arguments.ts';
import { readTraceparent, writeTraceparent } from '../protocol/traceparent.ts';
import { ERROR_STATUS, type PawlSpan, type PawlTracer, TRACEPARENT } from '../protocol/tracer.ts';
import type { Hold } from './hold.ts';
import type { CheckedSettings } from './options.ts';

export type { PawlSpan, PawlTracer } from '../protocol/tracer.ts';

/** A span for each acquire, linked to the traces of those it waited for: they show theirs to whoever looks at the lock. */
export class Tracing {
  readonly #tracer: PawlTracer;
  readonly #service: LockService;

  constructor(tracer: PawlTracer, service: LockService) {
    this.#tracer = tracer;
    this.#service = service;
  }

  /** Runs an acquire within a span. What the tracer throws is kept from it: then it runs with less of a span, or none. */
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
    const span = quietly(() => this.#tracer.startSpan('pawl.acquire', { attributes }));
    const traceparent = quietly(() => span && writeTraceparent(span.spanContext()));
    if (span === undefined || traceparent === undefined) return run(settings);
    const owner = withTrace(settings.owner, traceparent);
    const links: Promise<void>[] = [];
    const onQueued = () => {
      quietly(() => span.setAttribute('pawl.queued', true));
      links.push(...names.map((name) => this.#linkHolders(span, name)));
    };
    try {
      const hold = await run({ ...settings, owner, onQueued });
      quietly(() => span.setAttribute('pawl.token', hold.first.token.toString()));
      return hold;
    } catch (error) {
      quietly(() => {
        if (error instanceof Error) span.recordException(error);
        span.setStatus({ code: ERROR_STATUS, message: isPawlError(error) ? error.code : String(error) });
      });
      throw error;
    } finally {
      // The acquire does not wait for them: an engine that is silent would hold up what it was granted, or its time-out.
      void Promise.all(links).then(() => quietly(() => span.end()));
    }
  }

  async #linkHolders(span: PawlSpan, name: string): Promise<void> {
    try {
      const { holders } = await this.#service.inspect(name);
      for (const { owner } of holders) {
        const context = readTraceparent(owner[TRACEPARENT]);
        if (context !== undefined) span.addLink?.({ context });
      }
    } catch {
      // A trace without a link is no reason to fail an acquire.
    }
  }
}

/** The owner with its trace, unless that makes it larger than one may be. */
function withTrace(owner: Owner, traceparent: string): Owner {
  const traced = { [TRACEPARENT]: traceparent, ...owner };
  return Buffer.byteLength(JSON.stringify(traced)) > OWNER_BYTES ? owner : traced;
}

function quietly<T>(tell: () => T): T | undefined {
  try {
    return tell();
  } catch {
    return undefined;
  }
}
