import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { PawlTracer } from '../client/tracing.ts';
import { sleep, systemClock } from '../clock.ts';
import { InvalidArgumentError } from '../errors.ts';

const API = '@opentelemetry/api';
/** So long the spans that an SDK has gathered may take to leave when the server stops, in ms. */
const FLUSH_LIMIT_MS = 5000;

/** What is called on `trace` of the API. */
interface TraceApi {
  getTracer(name: string): PawlTracer;
  getTracerProvider(): Provider;
}

interface Provider {
  /** Of the API's own provider, which stands for the one that an SDK registers. */
  getDelegate?(): Provider;
  forceFlush?(): Promise<unknown>;
}

/** The tracer that an SDK has registered with the API, which the process loaded with `node --import`. */
export interface GlobalTracer {
  readonly tracer: PawlTracer;
  /** Whether there is an SDK that its spans go to. */
  readonly isHeard: boolean;
  /** Has the SDK send what it has gathered, as far as that succeeds in time. */
  flush(): Promise<void>;
}

/**
 * Finds the API where the server is started, or beside Pawl.
 *
 * @throws InvalidArgumentError where it is not installed.
 */
export function globalTracer(folder = process.cwd()): GlobalTracer {
  const api = load(join(folder, 'package.json')) ?? load(import.meta.url);
  if (api === undefined) {
    const expected = `given only where ${API} is installed: npm install ${API}, and an SDK that exports the spans, such as @opentelemetry/sdk-node`;
    throw new InvalidArgumentError('trace', expected, true);
  }
  const provider = api.getTracerProvider();
  const sdk = provider.getDelegate?.() ?? provider;
  const flush = async () => sdk.forceFlush?.();
  return {
    tracer: api.getTracer('pawl'),
    isHeard: typeof sdk.forceFlush === 'function',
    flush: async () => {
      // Spans that cannot be sent are no reason to fail.
      const flushed = flush().catch(() => {});
      await Promise.race([flushed, sleep(systemClock, FLUSH_LIMIT_MS, { keepProcess: false })]);
    },
  };
}

/** @returns `undefined` where it is not installed. */
function load(from: string): TraceApi | undefined {
  const require = createRequire(from);
  try {
    return require(API).trace;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
