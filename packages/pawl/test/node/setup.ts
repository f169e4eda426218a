import { onTestFinished } from 'vitest';
import type { AskedLock } from '../../src/core/commands.ts';
import type { Engine } from '../../src/engines/engine.ts';
import { LockNode, type LockNodeOptions } from '../../src/node/lock-node.ts';
import type { AcquireAnswer, GrantedLock } from '../../src/node/service.ts';
import { MemoryFaults, MemoryStore, memoryEngine, SimulatedTime } from '../../src/testing/index.ts';

const TTL_MS = 600_000;
let requests = 0;

/** A node over a store that it may share with others, and how often it called its engine. */
export class NodeSetup {
  readonly time: SimulatedTime;
  readonly store: MemoryStore;
  readonly faults = new MemoryFaults();
  readonly engine: Engine;
  readonly node: LockNode;

  constructor(
    shared?: { time: SimulatedTime; store: MemoryStore },
    options: Omit<LockNodeOptions, 'clock'> = {},
    change: (engine: Engine) => Engine = (engine) => engine,
  ) {
    this.time = shared?.time ?? new SimulatedTime();
    this.store = shared?.store ?? new MemoryStore();
    const clock = this.time.clock();
    this.engine = change(memoryEngine({ store: this.store, clock, faults: this.faults }));
    this.node = new LockNode(this.engine, { clock, ...options });
    onTestFinished(async () => {
      await this.node.close();
      await this.engine.close();
    });
  }

  /** How often a method of the engine was called since the last time this was asked. */
  callsOf(method: 'read' | 'commit'): number {
    const calls = this.faults.calls.get(method) ?? 0;
    this.faults.calls.set(method, 0);
    return calls;
  }

  openSession(): Promise<string> {
    return this.node.openSession(TTL_MS);
  }

  acquire(session: string, name: string, wait = false): Promise<AcquireAnswer> {
    return this.acquireAs(newRequest(session), [{ name, mode: 'exclusive', permits: null }], wait);
  }

  acquireAs(
    id: { session: string; request: string },
    locks: readonly AskedLock[],
    wait = false,
  ): Promise<AcquireAnswer> {
    return this.node.acquire(id, locks, { wait, owner: {}, lockDelayMs: 0, barging: false });
  }
}

export function newRequest(session: string): { session: string; request: string } {
  requests += 1;
  return { session, request: `request-${requests}` };
}

/** The one lock that must have been granted. */
export function granted(answer: AcquireAnswer): GrantedLock {
  const grant = answer.kind === 'granted' ? answer.grants[0] : undefined;
  if (grant === undefined) throw new Error(`It was to be granted, and was ${answer.kind}.`);
  return grant;
}
