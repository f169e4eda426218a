import type { Lease, LeaseSet } from '../../packages/pawl/src/client/lease.ts';
import { sleep } from '../../packages/pawl/src/clock.ts';
import { isPawlError } from '../../packages/pawl/src/errors.ts';
import { Fence, StaleTokenError } from '../../packages/pawl/src/fences/index.ts';
import type { GrantSeen, SimulatedTime } from '../../packages/pawl/src/testing/index.ts';
import type { Chance } from './chance.ts';
import type { StoreWatcher } from './invariants.ts';
import { Observations, type ObservedAcquire } from './observations.ts';
import type { SimulatedProcess } from './process.ts';
import type { Granted, WatchedStore } from './stored-acquires.ts';
import { type Timeline, Violation } from './timeline.ts';

/** A value behind a fence. */
class Resource {
  readonly fence: Fence;
  value = 0;
  readonly accepted: bigint[] = [];

  constructor(name: string) {
    this.fence = new Fence(name);
  }
}

export interface WorkloadOptions {
  readonly chance: Chance;
  readonly time: SimulatedTime;
  readonly store: WatchedStore;
  readonly watcher: StoreWatcher;
  readonly timeline: Timeline;
}

/** What clients do: all kinds of acquires, work under the lease, writes behind a fence; and what they see. */
export class Workload {
  readonly grants: GrantSeen[] = [];
  readonly observations: Observations;
  readonly #options: WorkloadOptions;
  readonly #resources = new Map<string, Resource>();
  /** The processes of the clients that have not come to an end. */
  readonly #running = new Map<string, SimulatedProcess>();
  #failure: unknown;
  #clients = 0;
  readonly #forgotten: { readonly lease: Lease; readonly seen: ObservedAcquire }[] = [];
  /** Nobody forgets a lease any more. */
  careful = false;
  /** Whoever is through with what it does ends. */
  over = false;

  constructor(options: WorkloadOptions) {
    this.#options = options;
    this.observations = new Observations(options.time, options.store);
  }

  /** Clients in this process, who go on until the workload is over or the process dies. */
  start(process: SimulatedProcess, clients: number): void {
    for (let i = 0; i < clients; i += 1) {
      this.#clients += 1;
      const client = `${process.name}/${this.#clients}`;
      this.#running.set(client, process);
      this.#client(process, client)
        .catch((error) => {
          if (process.alive) this.#failure ??= error;
        })
        .finally(() => this.#running.delete(client));
    }
  }

  /** Gives back the leases that clients forgot: their process would renew them for ever. */
  releaseForgotten(): void {
    for (const { lease, seen } of this.#forgotten.splice(0))
      seen.release(() => lease.release()).catch(() => {});
  }

  /** The clients that have not come to an end, though their processes live. */
  get unfinished(): readonly string[] {
    return [...this.#running].filter(([, process]) => process.alive).map(([client]) => client);
  }

  /** Whether all have come to an end; of processes that died nothing more is to be expected. */
  get idle(): boolean {
    return this.unfinished.length === 0;
  }

  /** @throws what went wrong. */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  get effects(): { resource: string; token: bigint }[] {
    return [...this.#resources].flatMap(([resource, { accepted }]) =>
      accepted.map((token) => ({ resource, token })),
    );
  }

  async #client(process: SimulatedProcess, client: string): Promise<void> {
    const { chance } = this.#options;
    while (!this.over) {
      try {
        const kind = chance.share();
        if (kind < 0.6) await this.#exclusive(process, client);
        else if (kind < 0.75) await this.#shared(process, client);
        else if (kind < 0.88) await this.#permit(process, client);
        else await this.#several(process, client);
      } catch (error) {
        if (error instanceof Violation || !(isPawlError(error) || error instanceof StaleTokenError))
          throw error;
        this.#options.timeline.note('error', `${client} ${error.code}`);
      }
      await sleep(process.clock, chance.from(1, 300));
    }
  }

  async #exclusive(process: SimulatedProcess, client: string): Promise<void> {
    const { chance, time, timeline } = this.#options;
    const lock = chance.pick(['a', 'b', 'c']);
    const abort = new AbortController();
    if (chance.happens(0.1)) process.clock.setTimer(chance.from(1, 800), () => abort.abort());
    const askedAtMs = time.nowMs;
    const settings = {
      ttlMs: chance.pick([1000, 3000]),
      waitMs: chance.pick([0, 200, 2000, undefined]),
      lockDelayMs: chance.happens(0.2) ? 500 : 0,
      // Of one lock all barge or none does.
      barging: lock === 'c',
      signal: abort.signal,
    };
    const about = { waits: settings.waitMs !== 0, barging: settings.barging };
    const seen = this.observations.asked(client, [lock], about);
    const { owner } = seen;
    const lease = await seen.answered(process.pawl.acquire(lock, { ...settings, owner }), grantOf);
    timeline.note('granted', `${client} ${lock} token ${lease.token}`);
    await this.#work(process, client, lock, lease, seen, askedAtMs);
  }

  async #work(
    process: SimulatedProcess,
    client: string,
    lock: string,
    lease: Lease,
    seen: ObservedAcquire,
    askedAtMs: number,
  ): Promise<void> {
    const { chance, time, timeline } = this.#options;
    const resource = this.#resource(lock);
    const grantedAtMs = time.nowMs;
    let heldUntilMs = grantedAtMs;
    const look = () => {
      this.#assertTrue(client, lock, lease);
      heldUntilMs = time.nowMs;
      seen.held();
    };
    try {
      look();
      this.#raise(resource, client, lock, lease);
      const before = resource.value;
      // Some work for longer than any lease lasts without a renewal, and look all the time.
      const isLong = chance.happens(0.1);
      for (let step = isLong ? chance.from(10, 40) : chance.from(0, 4); step > 0; step -= 1) {
        await sleep(process.clock, isLong ? 100 : chance.from(1, 400));
        // Half of the others do not look, as zombies do not.
        if (isLong || chance.happens(0.5)) look();
      }
      this.#fenced('write', lock, lease, () =>
        resource.fence.write(lease, () => {
          if (resource.value !== before) {
            throw new Violation(`S8: ${client} wrote over ${resource.value}, which it had not read`);
          }
          resource.value = before + 1;
          resource.accepted.push(lease.token);
        }),
      );
      look();
    } finally {
      if (process.alive) {
        this.grants.push({ lock, token: lease.token, client, askedAtMs, grantedAtMs, heldUntilMs });
      }
    }
    if (!this.careful && chance.happens(0.05)) {
      timeline.note('forgotten', `${client} ${lock}`);
      this.#forgotten.push({ lease, seen });
      return;
    }
    await seen.release(() => lease.release());
    timeline.note('released', `${client} ${lock} token ${lease.token}`);
  }

  async #shared(process: SimulatedProcess, client: string): Promise<void> {
    const { chance } = this.#options;
    const mode = chance.happens(0.8) ? 'shared' : 'exclusive';
    const seen = this.observations.asked(client, ['shared'], { mode, waits: true });
    const settings = { ttlMs: 2000, waitMs: 3000, mode, owner: seen.owner } as const;
    const lease = await seen.answered(process.pawl.acquire('shared', settings), grantOf);
    await sleep(process.clock, chance.from(1, 300));
    this.#assertTrue(client, 'shared', lease);
    seen.held();
    await seen.release(() => lease.release());
  }

  async #permit(process: SimulatedProcess, client: string): Promise<void> {
    const { chance } = this.#options;
    const seen = this.observations.asked(client, ['permits'], { permits: 3, waits: true });
    const settings = { ttlMs: 2000, waitMs: 3000, owner: seen.owner };
    const lease = await seen.answered(process.pawl.semaphore('permits', 3).acquire(settings), grantOf);
    await sleep(process.clock, chance.from(1, 300));
    this.#assertTrue(client, 'permits', lease);
    seen.held();
    await seen.release(() => lease.release());
  }

  async #several(process: SimulatedProcess, client: string): Promise<void> {
    const { chance, timeline } = this.#options;
    const names = chance.happens(0.5) ? ['a', 'b'] : ['b', 'a', 'd'];
    const seen = this.observations.asked(client, names, { waits: true });
    const settings = { ttlMs: 2000, waitMs: 5000, owner: seen.owner };
    const leases = await seen.answered(process.pawl.acquireAll(names, settings), grantsOf);
    timeline.note('granted', `${client} ${names.join(' and ')}`);
    await sleep(process.clock, chance.from(1, 200));
    await seen.release(() => leases.release());
  }

  /** S7: whoever holds the lock has the highest token, and is not refused. */
  #raise(resource: Resource, client: string, lock: string, lease: Lease): void {
    try {
      this.#fenced('raise', lock, lease, () => resource.fence.raise(lease));
    } catch (error) {
      const { watcher, time } = this.#options;
      if (!watcher.holds(lock, lease.token, time.nowMs)) throw error;
      throw new Violation(
        `S7: ${client} was refused with token ${lease.token}, under which it holds "${lock}"`,
      );
    }
  }

  #fenced(kind: 'write' | 'raise', resource: string, { token }: Lease, act: () => void): void {
    try {
      act();
      this.observations.fenced(kind, resource, token, 'accepted');
    } catch (error) {
      if (error instanceof StaleTokenError) this.observations.fenced(kind, resource, token, 'refused');
      throw error;
    }
  }

  /** C1, C4: while a client may believe that it holds the lock, the store says so too. */
  #assertTrue(client: string, lock: string, lease: Lease): void {
    lease.assertHeld();
    const { watcher, time } = this.#options;
    if (watcher.holds(lock, lease.token, time.nowMs)) return;
    throw new Violation(
      `C1: ${client} believes that it holds "${lock}" with token ${lease.token}, and does not`,
    );
  }

  #resource(name: string): Resource {
    let resource = this.#resources.get(name);
    if (resource === undefined) {
      resource = new Resource(name);
      this.#resources.set(name, resource);
    }
    return resource;
  }
}

function grantOf({ name, token, slot }: Lease): readonly Granted[] {
  return [{ lock: name, token, slot }];
}

function grantsOf({ tokens }: LeaseSet): readonly Granted[] {
  return [...tokens].map(([lock, token]) => ({ lock, token, slot: 0 }));
}
