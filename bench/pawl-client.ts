import { open } from '../packages/pawl/src/client/open.ts';
import type { Engine } from '../packages/pawl/src/engines/engine.ts';
import { type Contestant, TTL_MS } from './contestant.ts';

export interface OpenEngine {
  readonly engine: Engine;
  /** Closes its connections; where it has any, or other clients use the engine too. */
  readonly close?: () => unknown;
}

/** Pawl on an engine; each client has a node and connections of its own. */
export function onEngine(name: string, openEngine: (clients: number) => Promise<OpenEngine>): Contestant {
  return {
    name,
    kind: 'engine',
    waits: 'queue',
    connect: async (clients) => {
      const { engine, close = () => engine.close() } = await openEngine(clients);
      const pawl = open(engine);
      return {
        acquire: async (lock) => {
          const lease = await pawl.acquire(lock, { ttlMs: TTL_MS });
          return () => lease.release();
        },
        close: async () => {
          await pawl.close();
          await close();
        },
      };
    },
  };
}
