import { describe, expect, it } from 'vitest';
import type { Lease } from '../../src/client/lease.ts';
import { World } from './world.ts';

/** Ends the session that asked first, at the engine: its client is not told. */
function endFirstSession(world: World): void {
  const [request] = world.store.list('req/', 1);
  const session = request?.key.split('/')[1];
  if (session === undefined) throw new Error('There is no session.');
  world.store.endSession(session);
}

describe('a session that the engine ended early', () => {
  it('S3, C6: is noticed by the next renewal, and all its leases are lost', async () => {
    const world = new World();
    const { pawl } = world.process();
    const lease = await pawl.acquire('x', { ttlMs: 3000 });
    endFirstSession(world);
    expect(lease.held).toBe(true);
    await world.advance(1100);
    expect(lease.state).toBe('lost');
    expect(lease.remainingMs).toBe(0);
    expect(lease.signal.reason).toMatchObject({ code: 'PAWL_LEASE_LOST' });
    expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: 'PAWL_LEASE_LOST' }));
  });

  it('S3: is noticed by the next acquires, which begin anew and know nothing of it', async () => {
    const world = new World();
    const { pawl } = world.process();
    const old = await pawl.acquire('x', { ttlMs: 3000 });
    endFirstSession(world);
    const [one, other] = await world.settle(
      Promise.all([pawl.acquire('y', { ttlMs: 3000 }), pawl.acquire('z', { ttlMs: 3000 })]),
    );
    expect([old.state, one.held, other.held]).toEqual(['lost', true, true]);
    await world.advance(10_000);
    expect([one.held, other.held]).toEqual([true, true]);
  });

  it('L2: acquires that find it ended go on in one new session, in their order', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    const old = await pawl.acquire('x', { ttlMs: 3000 });
    endFirstSession(world);
    await world.advance(1100);
    expect(old.held).toBe(false);
    faults.calls.clear();
    const leases = await world.settle(
      Promise.all(['a', 'b', 'c'].map((name) => pawl.acquire(name, { ttlMs: 3000 }))),
    );
    expect(leases.every(({ held }) => held)).toBe(true);
    expect(faults.calls.get('openSession')).toBe(1);
    const tokens = leases.map(({ token }) => token);
    expect([...tokens].sort((a, b) => Number(a - b))).toEqual(tokens);
  });
});

describe('a renewal', () => {
  it('C1: that was answered after the machine slept past the deadline renews nothing', async () => {
    const world = new World();
    const { pawl, clock, faults } = world.process();
    const lease = await pawl.acquire('x', { ttlMs: 3000 });
    faults.failNext('keepAlive', { replyDelayMs: 50 });
    await world.advance(1010);
    clock.jumpWall(5000);
    await world.advance(60);
    expect(lease.state).toBe('lost');
  });

  it('after the client was closed changes nothing any more', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    const lease = await pawl.acquire('x', { ttlMs: 3000 });
    faults.failNext('keepAlive', { replyDelayMs: 50 });
    await world.advance(1010);
    await pawl.close();
    await world.advance(5000);
    expect(lease.state).toBe('released');
    expect(lease.remainingMs).toBe(0);
    expect(lease.signal.reason).toMatchObject({ code: 'PAWL_CLOSED' });
  });

  it('C3: a listener may close the client at safe-stop; nothing is renewed after that', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    const lease = await pawl.acquire('x', { ttlMs: 3000 });
    const closing = Promise.withResolvers<void>();
    pawl.on('atRisk', () => {
      faults.onCall = undefined;
      closing.resolve(pawl.close());
    });
    faults.onCall = (method) => (method === 'keepAlive' ? { kind: 'refused' } : undefined);
    await world.advance(1600);
    await world.settle(closing.promise);
    faults.calls.clear();
    await world.advance(10_000);
    expect(faults.calls.get('keepAlive')).toBeUndefined();
    expect(lease.state).toBe('released');
    const next = await world.process().pawl.acquire('x', { waitMs: 0 });
    expect(next.token).toBeGreaterThan(lease.token);
  });
});

describe('a client that is closed while its first session opens', () => {
  it('L1: turns the acquire away, and leaves no session that somebody would have to wait for', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    faults.failNext('openSession', { replyDelayMs: 100 });
    const acquiring = world.failure(pawl.acquire('x'));
    await world.advance(10);
    await pawl.close();
    expect(await acquiring).toMatchObject({ code: 'PAWL_CLOSED' });
    expect(await world.failure(pawl.acquire('x'))).toMatchObject({ code: 'PAWL_CLOSED' });
    expect(world.store.size).toBe(0);
  });
});

describe('an acquire', () => {
  it('L5: whose session does not open in time surely did not happen', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    faults.failNext('openSession', { kind: 'never' });
    const error = await world.failure(pawl.acquire('x', { waitMs: 700 }));
    expect(error).toMatchObject({ code: 'PAWL_ENGINE_UNAVAILABLE', outcome: 'definite' });
    expect(error.message).toContain('700 ms');
    expect(faults.calls.get('commit')).toBeUndefined();
  });

  it('L5: that stands in a queue is not given up for the engine’s silence, however long the wait', async () => {
    const world = new World();
    const [one, two] = [world.process(), world.process()];
    const held = await one.pawl.acquire('x');
    const waiting = two.pawl.acquire('x', { waitMs: 60_000 });
    await world.advance(15_000);
    await held.release();
    expect((await world.settle(waiting)).token).toBeGreaterThan(held.token);
  });

  it('S6: that was aborted while it waited to ask again is not asked again, and leaves nothing', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    await (await pawl.acquire('warm')).release();
    const abort = new AbortController();
    faults.failNext('commit', { kind: 'lost' });
    const acquiring = world.failure(pawl.acquire('x', { signal: abort.signal }));
    await world.advance(1);
    abort.abort('enough');
    expect(await acquiring).toMatchObject({ code: 'PAWL_ACQUIRE_ABORTED' });
    await world.advance(2000);
    expect(await world.process().pawl.inspect('x')).toMatchObject({ holders: [], waiting: 0 });
  });
});

describe('an export', () => {
  it('S4: of a lease that was broken unheard is a loss, and hands nothing over', async () => {
    const world = new World();
    const [one, other] = [world.process(), world.process()];
    const lease = await one.pawl.acquire('x');
    one.faults.onWake = () => 0;
    await other.pawl.breakLock('x', { token: lease.token, reason: 'test' });
    expect(lease.held).toBe(true);
    expect(await world.failure(lease.export())).toMatchObject({ code: 'PAWL_LEASE_LOST' });
    expect(lease.state).toBe('lost');
    expect((await one.pawl.inspect('x')).holders).toEqual([]);
  });

  it('C1: that is resumed too slowly is lost to who resumed it, and to nobody else', async () => {
    const world = new World();
    const [one, other] = [world.process(), world.process()];
    const lease = await one.pawl.acquire('x', { ttlMs: 600 });
    const exported = await lease.export();
    other.faults.failNext('commit', { replyDelayMs: 2000 });
    expect(await world.failure(other.pawl.resume(exported))).toMatchObject({ code: 'PAWL_LEASE_LOST' });
    await world.advance(2000);
    const next: Lease = await world.settle(one.pawl.acquire('x'));
    expect(next.token).toBeGreaterThan(lease.token);
  });
});

describe('work under a lock that was broken unheard', () => {
  /** Runs `work` under a lock that another process breaks meanwhile, without a word. */
  async function failureOf(work: (lease: Lease) => unknown) {
    const world = new World();
    const [one, other] = [world.process(), world.process()];
    one.faults.onWake = () => 0;
    return world.failure(
      one.pawl.withLock('x', {}, async (lease) => {
        await other.pawl.breakLock('x', { token: lease.token, reason: 'test' });
        return work(lease);
      }),
    );
  }

  it('C6: rejects with the loss, and what the work came to is its cause', async () => {
    expect(await failureOf(() => 'done')).toMatchObject({ code: 'PAWL_LEASE_LOST', cause: 'done' });
  });

  it('C6: its own error is not hidden by the loss', async () => {
    const own = new Error('of the work');
    expect(
      await failureOf(() => {
        throw own;
      }),
    ).toBe(own);
  });

  it('C6: a loss that the work itself met is not wrapped, unless it is that of another lease', async () => {
    /** What work comes to that meets the loss of a lease: its own, or another that it held meanwhile. */
    const met = async (which: 'own' | 'other') => {
      const world = new World();
      const { pawl, faults } = world.process();
      const other = await pawl.acquire('other', { ttlMs: 600 });
      const gate = Promise.withResolvers<void>();
      const working = world.failure(
        pawl.withLock('x', { ttlMs: 600 }, async (lease) => {
          faults.unreachable = true;
          await gate.promise;
          (which === 'own' ? lease : other).assertHeld();
        }),
      );
      await world.advance(1000);
      faults.unreachable = false;
      gate.resolve();
      return working;
    };
    const own = await met('own');
    expect(own).toMatchObject({ code: 'PAWL_LEASE_LOST', lock: 'x' });
    expect(own.message).toContain('no renewal succeeded');
    expect(await met('other')).toMatchObject({
      code: 'PAWL_LEASE_LOST',
      lock: 'x',
      cause: { code: 'PAWL_LEASE_LOST', lock: 'other' },
    });
  });
});

describe('an election', () => {
  it('ends with its signal, also for a leader whose lease was lost at the same time', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    const stop = new AbortController();
    let reigns = 0;
    const campaign = world.failure(
      pawl.elect('leader', { ttlMs: 600, signal: stop.signal }, (lease) => {
        reigns += 1;
        return new Promise((_, reject) => {
          lease.signal.addEventListener('abort', () => reject(lease.signal.reason));
        });
      }),
    );
    await world.advance(100);
    stop.abort('enough');
    faults.unreachable = true;
    await world.advance(1000);
    faults.unreachable = false;
    expect(await campaign).toMatchObject({ code: 'PAWL_ACQUIRE_ABORTED' });
    expect(reigns).toBe(1);
  });

  it('is observed: another candidate is no change of leader', async () => {
    const world = new World();
    const [one, other] = [world.process(), world.process()];
    const seen: (bigint | null)[] = [];
    const stop = new AbortController();
    const observing = (async () => {
      for await (const leader of one.pawl.observe('leader', { signal: stop.signal })) {
        seen.push(leader?.token ?? null);
        // Between two looks: the observer stops without waiting for the next.
        if (seen.length === 3) stop.abort();
      }
    })();
    const first = await one.pawl.acquire('leader');
    await world.advance(300);
    const candidate = other.pawl.acquire('leader');
    await world.advance(1000);
    expect(seen).toEqual([null, first.token]);
    await first.release();
    const second = await world.settle(candidate);
    await world.settle(observing);
    expect(seen).toEqual([null, first.token, second.token]);
  });
});
