import type { Clock } from '../clock.ts';
import type { Engine } from '../engines/engine.ts';
import { InvalidArgumentError } from '../errors.ts';
import { LockNode } from '../node/lock-node.ts';
import type { SignGrant } from '../node/service.ts';
import { Pawl } from './pawl.ts';
import type { PawlTracer } from './tracing.ts';

export interface OpenOptions {
  /** The system's clock unless set; tests pass a simulated one. Use the engine's. */
  readonly clock?: Clock;
  /** Makes a span for each acquire; such as `trace.getTracer('pawl')` of `@opentelemetry/api`. */
  readonly tracer?: PawlTracer;
  /** Signs every grant: `lease.sequencer`. Such as `(grant) => signSequencer(key, grant)` of `pawl/fences/sequencer`. */
  readonly sign?: SignGrant;
  /** The most that may queue for one lock, from 1; 100,000 unless set. */
  readonly maxWaiters?: number;
}

/**
 * Opens a client with a node of its own, in this process, over `engine`. Any number of them, in any number of processes, may
 * share one store.
 *
 * @param engine stays the caller's: close it after the client.
 * @throws InvalidArgumentError
 */
export function open(engine: Engine, options: OpenOptions = {}): Pawl {
  if (typeof engine?.commit !== 'function') {
    throw new InvalidArgumentError('engine', 'an engine, such as await sqliteEngine({ path })', engine);
  }
  const { maxWaiters } = options;
  if (maxWaiters !== undefined && !(Number.isSafeInteger(maxWaiters) && maxWaiters >= 1)) {
    throw new InvalidArgumentError('maxWaiters', 'a whole number from 1', maxWaiters);
  }
  return new Pawl(new LockNode(engine, options), options);
}
