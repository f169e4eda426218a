import { onTestFinished } from 'vitest';
import { open } from '../../src/client/open.ts';
import { Pawl } from '../../src/client/pawl.ts';
import { RemoteService } from '../../src/client/remote/remote-service.ts';
import type { Engine } from '../../src/engines/engine.ts';
import type { PawlError } from '../../src/errors.ts';
import { loopback } from '../../src/protocol/loopback.ts';
import { Connection } from '../../src/server/connection.ts';
import { checkLimits } from '../../src/server/limits.ts';
import { Log } from '../../src/server/log.ts';
import { serverParts } from '../../src/server/parts.ts';
import { ANYBODY } from '../../src/server/principal.ts';
import {
  MemoryFaults,
  MemoryStore,
  memoryEngine,
  type SimulatedClock,
  SimulatedTime,
} from '../../src/testing/index.ts';

/** One process: a client with a clock and an engine of its own, and what may go wrong with it. */
export interface Process {
  readonly pawl: Pawl;
  readonly clock: SimulatedClock;
  readonly faults: MemoryFaults;
}

/** Several processes over one store, in one simulated time. */
export class World {
  /** Whether a client has a node in its own process, or one behind a server; `over-a-server.test.ts` sets it. */
  static node: 'local' | 'remote' = 'local';

  readonly time = new SimulatedTime();
  readonly store = new MemoryStore();

  /** @param options `rate`: how fast the process's monotonic clock runs. */
  process(options: { rate?: number; maxWaiters?: number } = {}): Process {
    const { rate = 1, ...openOptions } = options;
    const clock = this.time.clock({ rate });
    // Sessions are the engine's: they expire by true time, whatever a client's clock says.
    const engineClock = this.time.clock();
    const faults = new MemoryFaults();
    const engine = memoryEngine({ store: this.store, clock: engineClock, faults });
    const pawl =
      World.node === 'local'
        ? open(engine, { clock, ...openOptions })
        : this.#connect(engine, clock, openOptions.maxWaiters);
    onTestFinished(async () => {
      faults.unreachable = false;
      faults.onCall = undefined;
      await this.settle(pawl.close());
      await engine.close();
    });
    return { pawl, clock, faults };
  }

  /** A client of a server of its own, over a connection on which nothing takes time. */
  #connect(engine: Engine, clock: SimulatedClock, waitersPerLock = 100_000): Pawl {
    const serverClock = this.time.clock();
    const limits = checkLimits({ waitersPerLock });
    const parts = serverParts({ engine, clock: serverClock, limits, log: new Log(serverClock) });
    const dial = async () => {
      const [near, far] = loopback();
      new Connection(parts, far, ANYBODY);
      return near;
    };
    const { guarantees } = engine;
    const service = new RemoteService({ urls: ['loopback'], dialer: { dial }, clock, guarantees });
    onTestFinished(() => parts.close());
    return new Pawl(service, { clock });
  }

  advance(ms: number): Promise<void> {
    return this.time.advance(ms);
  }

  /** What `work` comes to, letting time pass in small steps until it has. */
  async settle<T>(work: Promise<T>, limitMs = 120_000): Promise<T> {
    let done = false;
    const watched = work.finally(() => {
      done = true;
    });
    watched.catch(() => {});
    for (let passedMs = 0; !done; passedMs += 5) {
      if (passedMs > limitMs) throw new Error(`It did not settle within ${limitMs} ms of simulated time.`);
      await this.time.advance(5);
    }
    return watched;
  }

  /** The error that `work` rejects with. */
  async failure(work: Promise<unknown>, limitMs?: number): Promise<PawlError> {
    try {
      await this.settle(work, limitMs);
    } catch (error) {
      return error as PawlError;
    }
    throw new Error('It was expected to fail and did not.');
  }
}
