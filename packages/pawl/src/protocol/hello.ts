import type { EngineGuarantees } from '../engines/engine.ts';
import type { Hello } from './calls.ts';
import { Fields } from './fields.ts';

const MOST = Number.MAX_SAFE_INTEGER;

/** Reads a server's greeting. @throws InvalidArgumentError */
export function readHello(message: unknown): Hello {
  const hello = new Fields(message, 'hello');
  const guarantees = new Fields(hello.raw('guarantees'), 'guarantees');
  guarantees.integer('minTtlMs', 1, MOST);
  const limits = new Fields(hello.raw('limits'), 'limits');
  return {
    event: 'hello',
    guarantees: hello.raw('guarantees') as EngineGuarantees,
    limits: {
      frameBytes: limits.integer('frameBytes', 1, MOST),
      messagesPerFrame: limits.integer('messagesPerFrame', 1, MOST),
      requestsInFlight: limits.integer('requestsInFlight', 1, MOST),
    },
  };
}
