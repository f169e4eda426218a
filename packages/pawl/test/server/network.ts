import { onTestFinished } from 'vitest';
import { Pawl } from '../../src/client/pawl.ts';
import { RemoteService } from '../../src/client/remote/remote-service.ts';
import { memoryGuarantees } from '../../src/engines/memory/index.ts';
import { loopback } from '../../src/protocol/loopback.ts';
import type { Transport, TransportEvents } from '../../src/protocol/transport.ts';
import { Connection } from '../../src/server/connection.ts';
import { checkLimits, type Limits } from '../../src/server/limits.ts';
import { Log } from '../../src/server/log.ts';
import { type ServerParts, serverParts } from '../../src/server/parts.ts';
import { ANYBODY } from '../../src/server/principal.ts';
import { MemoryFaults, MemoryStore, memoryEngine, SimulatedTime } from '../../src/testing/index.ts';

/** One connection, with what may happen to its frames. */
export class Wire {
  /** While set, frames in that direction are kept back instead of delivered. */
  holdRequests = false;
  holdReplies = false;
  readonly connection: Connection;
  readonly #near: Transport;
  readonly #kept: (() => void)[] = [];

  constructor(parts: ServerParts, onUse: (transport: Transport) => void) {
    const [near, far] = loopback();
    this.#near = near;
    onUse(this.#filtered(near, () => this.holdReplies, false));
    this.connection = new Connection(
      parts,
      this.#filtered(far, () => this.holdRequests, true),
      ANYBODY,
    );
  }

  /** The client notices that the connection is gone; the server may still get what was sent. */
  drop(): void {
    this.#near.cut();
  }

  /** Delivers what was kept back, in its order. */
  deliverLate(): void {
    for (const deliver of this.#kept.splice(0)) deliver();
  }

  #filtered(inner: Transport, held: () => boolean, closesLate: boolean): Transport {
    return {
      start: (events: TransportEvents) =>
        inner.start({
          onFrame: (frame) => {
            if (held()) this.#kept.push(() => events.onFrame(frame));
            else events.onFrame(frame);
          },
          // A server that is behind reads what it got before it learns that the connection is gone.
          onClose: (closing) => {
            if (closesLate && held()) this.#kept.push(() => events.onClose(closing));
            else events.onClose(closing);
          },
        }),
      send: (frame) => inner.send(frame),
      bufferedBytes: 0,
      pause: () => {},
      resume: () => {},
      defer: (run) => inner.defer(run),
      yieldTo: (run) => inner.yieldTo(run),
      close: (code, reason) => inner.close(code, reason),
      cut: () => inner.cut(),
    };
  }
}

/** Servers over one store, and clients on connections that break, in simulated time. */
export class Network {
  readonly time = new SimulatedTime();
  readonly store = new MemoryStore();
  readonly servers = new Map<string, ServerParts>();
  readonly faults = new Map<string, MemoryFaults>();
  /** Servers that cannot be reached. */
  readonly down = new Set<string>();
  /** All connections that were made, in order, of each server. */
  readonly wires: { readonly url: string; readonly wire: Wire }[] = [];

  server(url: string, limits: Partial<Limits> = {}): ServerParts {
    const clock = this.time.clock();
    const faults = new MemoryFaults();
    const engine = memoryEngine({ store: this.store, clock, faults });
    const parts = serverParts({ engine, clock, limits: checkLimits(limits), log: new Log(clock) });
    this.servers.set(url, parts);
    this.faults.set(url, faults);
    onTestFinished(async () => {
      await parts.close();
      await engine.close();
    });
    return parts;
  }

  service(...urls: string[]): RemoteService {
    const clock = this.time.clock();
    const dial = async (url: string): Promise<Transport> => {
      const parts = this.servers.get(url);
      if (parts === undefined || this.down.has(url)) throw new Error('It cannot be reached.');
      const { promise, resolve } = Promise.withResolvers<Transport>();
      this.wires.push({ url, wire: new Wire(parts, resolve) });
      return promise;
    };
    return new RemoteService({ urls, dialer: { dial }, clock, guarantees: memoryGuarantees });
  }

  client(...urls: string[]): Pawl {
    const clock = this.time.clock();
    const pawl = new Pawl(this.service(...urls), { clock });
    onTestFinished(() => {
      this.down.clear();
      return this.settle(pawl.close());
    });
    return pawl;
  }

  /** The newest connection. */
  get wire(): Wire {
    const newest = this.wires.at(-1);
    if (newest === undefined) throw new Error('Nobody has connected.');
    return newest.wire;
  }

  /** What `work` comes to, letting time pass until it has. */
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
}
