import { describe, expect, it } from 'vitest';
import { World } from '../client/world.ts';

const TTL = 600;
const code = (value: string) => expect.objectContaining({ code: value });

describe('renewals that fail', () => {
  it('C5: a wait that ran out and a lease that was lost are different errors, and each says which lock and how long', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const lease = await a.pawl.acquire('x', { ttlMs: TTL });
    expect(await world.failure(b.pawl.acquire('x', { waitMs: 200 }))).toMatchObject({
      code: 'PAWL_ACQUIRE_TIMEOUT',
      lock: 'x',
      waitedMs: 200,
    });
    a.faults.unreachable = true;
    await world.advance(TTL + 1);
    expect(lease.signal.aborted).toBe(true);
    await expect(lease.release()).rejects.toThrow(
      expect.objectContaining({ code: 'PAWL_LEASE_LOST', lock: 'x', token: lease.token }),
    );
  });

  it('S4: a release at the instant of expiry is a release or a loss, never a trouble of the engine, and leaves the next holder alone', async () => {
    const endings = new Set<string>();
    for (let releaseAt = TTL - 40; releaseAt <= TTL + 12; releaseAt += 1) {
      const world = new World();
      const [a, b] = [world.process(), world.process()];
      a.faults.onCall = (method) => {
        if (method === 'keepAlive') return { kind: 'never' };
        return method === 'commit' ? { delayMs: 4, replyDelayMs: 4 } : undefined;
      };
      const lease = await world.settle(a.pawl.acquire('x', { ttlMs: TTL }));
      const next = b.pawl.acquire('x', { ttlMs: TTL });
      await world.advance(Math.max(0, releaseAt - world.time.nowMs));
      const ended = await world.settle(
        lease.release().then(
          () => 'released',
          (error) => error.code,
        ),
      );
      endings.add(ended);
      const second = await world.settle(next);
      await world.advance(100);
      expect((await b.pawl.inspect('x')).holders.map(({ token }) => token)).toEqual([second.token]);
      await world.settle(Promise.all([a.pawl.close(), b.pawl.close()]));
    }
    expect([...endings].sort()).toEqual(['PAWL_LEASE_LOST', 'released']);
  });

  it('C2: an error in a renewal that nobody foresaw is one failed renewal, and no silence', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    const told: string[] = [];
    pawl.on('renewFailed', ({ error }) => told.push(`renewFailed: ${(error as Error).message}`));
    pawl.on('lost', () => told.push('lost'));
    const lease = await pawl.acquire('x', { ttlMs: TTL });
    let failing = 1;
    faults.onCall = (method) => {
      if (method === 'keepAlive' && failing-- > 0) throw new TypeError('500');
      return undefined;
    };
    await world.advance(5 * TTL);
    expect([lease.held, lease.signal.aborted, told]).toEqual([true, false, ['renewFailed: 500']]);
    failing = Number.POSITIVE_INFINITY;
    await world.advance(TTL + 1);
    expect(lease.state).toBe('lost');
    expect(told.at(-1)).toBe('lost');
  });

  it('C3, C6: failed renewals, risk and loss are told in this order; risk and loss once, with what was the matter', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    const told: string[] = [];
    const errors: unknown[] = [];
    pawl.on('renewFailed', ({ error }) => {
      told.push('renewFailed');
      errors.push(error);
    });
    pawl.on('atRisk', ({ error }) => told.push(error.code));
    pawl.on('lost', ({ error }) => told.push(error.code));
    const lease = await pawl.acquire('x', { ttlMs: TTL });
    faults.failNext('keepAlive', { kind: 'refused' });
    await world.advance(3 * TTL);
    expect([told, lease.held]).toEqual([['renewFailed'], true]);
    expect(errors[0]).toMatchObject({ code: 'PAWL_ENGINE_UNAVAILABLE', retryable: true });
    told.length = 0;
    faults.unreachable = true;
    await world.advance(5 * TTL);
    const order = told.filter((each, i) => each !== told[i - 1]);
    expect(order).toEqual(['renewFailed', 'PAWL_LEASE_AT_RISK', 'renewFailed', 'PAWL_LEASE_LOST']);
  });

  it('C5: a lease that was broken says so, by whose reason, and is not retried; a store that is away says that', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const lost: unknown[] = [];
    a.pawl.on('lost', ({ error }) => lost.push(error));
    const lease = await a.pawl.acquire('x', { ttlMs: TTL });
    await b.pawl.breakLock('x', { token: lease.token, reason: 'it hangs' });
    await world.advance(TTL);
    expect(lost).toEqual([
      expect.objectContaining({
        code: 'PAWL_LEASE_LOST',
        retryable: false,
        message: expect.stringContaining('broken (it hangs)'),
      }),
    ]);
  });

  it('S3: a session that ended while its process stood still is lost once, and never renewed again', async () => {
    const world = new World();
    const { pawl, clock, faults } = world.process();
    let lost = 0;
    pawl.on('lost', () => (lost += 1));
    await pawl.acquire('x', { ttlMs: TTL });
    clock.stall();
    await world.advance(2 * TTL);
    clock.resume();
    await world.advance(TTL);
    const calls = faults.calls.get('keepAlive');
    await world.advance(20 * TTL);
    expect([lost, faults.calls.get('keepAlive')]).toEqual([1, calls]);
    expect(await world.settle(pawl.acquire('x', { ttlMs: TTL }))).toMatchObject({ held: true });
  });

  it('C2, C6: thirty locks of a process that stood still are lost once each, and cost one renewal together', async () => {
    const world = new World();
    const { pawl, clock, faults } = world.process();
    const names = Array.from({ length: 30 }, (_, i) => `x${i}`);
    const lost: string[] = [];
    const failed: unknown[] = [];
    pawl.on('lost', ({ name }) => lost.push(name));
    pawl.on('renewFailed', (event) => failed.push(event));
    await Promise.all(names.map((name) => pawl.acquire(name, { ttlMs: TTL })));
    clock.stall();
    await world.advance(2 * TTL);
    clock.resume();
    await world.advance(5 * TTL);
    expect(lost.sort()).toEqual(names.sort());
    expect(failed).toEqual([]);
    expect(faults.calls.get('keepAlive') ?? 0).toBeLessThanOrEqual(1);
  });
});

describe('what is left behind', () => {
  it('2,000 leases of as many sessions that were all lost leave neither entries nor sessions nor timers', async () => {
    const world = new World();
    const [a, watcher] = [world.process(), world.process()];
    for (let i = 0; i < 2000; i += 1) await a.pawl.acquire(`x${i}`, { ttlMs: 10_000 + i });
    expect(world.store.sessionCount).toBe(2000);
    a.faults.unreachable = true;
    await world.advance(13_000);
    // Whoever uses the store buries what the lost client left.
    await world.settle(watcher.pawl.withLock('y', () => {}));
    await world.advance(30_000);
    a.faults.unreachable = false;
    await world.advance(30_000);
    expect([world.store.size, world.store.sessionCount, a.clock.pendingTimers]).toEqual([0, 0, 0]);
    const listed: string[] = [];
    for await (const { name } of watcher.pawl.list()) listed.push(name);
    expect(listed).toEqual([]);
  }, 60_000);

  it('S5: after 2,000 cycles with answers lost here and there all locks are free, and nothing is renewed', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    let commits = 0;
    faults.onCall = (method) => (method === 'commit' && ++commits % 97 === 0 ? { kind: 'lost' } : undefined);
    for (let i = 0; i < 2000; i += 1) {
      const lease = await world.settle(pawl.acquire(`x${i % 50}`, { ttlMs: TTL }));
      await world.settle(lease.release());
    }
    faults.onCall = undefined;
    await world.advance(2 * TTL);
    const calls = faults.calls.get('keepAlive');
    await world.advance(20 * TTL);
    expect(faults.calls.get('keepAlive')).toBe(calls);
    expect([world.store.size, world.store.sessionCount]).toEqual([0, 0]);
    for (let i = 0; i < 50; i += 1) expect(await pawl.tryAcquire(`x${i}`)).not.toBeNull();
  }, 60_000);

  it('S4: breaking what is unknown, just released or without a session is an answer each time, however many do it', async () => {
    const world = new World();
    const [a, operator] = [world.process(), world.process()];
    const breaking = (name: string, token: bigint) =>
      operator.pawl.breakLock(name, { token, reason: 'test' }).then(
        () => 'broken',
        (error) => error.code,
      );
    const released = await a.pawl.acquire('released', { ttlMs: TTL });
    await released.release();
    const orphan = await a.pawl.acquire('orphan', { ttlMs: TTL });
    await a.pawl.acquire('other', { ttlMs: 60_000 });
    a.faults.unreachable = true;
    await world.advance(TTL);
    const answers = await world.settle(
      Promise.all(
        Array.from({ length: 100 }, () => [
          breaking('unknown', 5n),
          breaking('released', released.token),
          breaking('orphan', orphan.token),
        ]).flat(),
      ),
    );
    expect(answers.filter((answer) => answer !== 'broken' && answer !== 'PAWL_NOT_HELD')).toEqual([]);
    expect(answers.filter((answer) => answer === 'broken').length).toBeLessThanOrEqual(1);
    await expect(operator.pawl.breakLock('unknown', { token: 5n, reason: 'x' })).rejects.toThrow(
      code('PAWL_NOT_HELD'),
    );
    for (const name of ['unknown', 'released', 'orphan'])
      expect(await operator.pawl.tryAcquire(name)).not.toBeNull();
    expect(await operator.pawl.tryAcquire('other')).toBeNull();
  });
});
