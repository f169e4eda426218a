/** The package has types, but its `exports` hide them. */
declare module 'redlock' {
  import type { Redis } from 'ioredis';

  export interface Lock {
    release(): Promise<unknown>;
  }
  export class ExecutionError extends Error {}
  export default class Redlock {
    constructor(clients: Iterable<Redis>);
    acquire(resources: string[], durationMs: number): Promise<Lock>;
  }
}
