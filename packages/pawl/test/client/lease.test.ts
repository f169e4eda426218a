import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { World } from './world.ts';

const TTL = 1200;
const code = (value: string) => expect.objectContaining({ code: value });

describe('a lease', () => {
  it('C2: is renewed at a third of its TTL, and one keep-alive serves all leases of a TTL', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    for (const name of ['a', 'b', 'c', 'd']) await pawl.acquire(name, { ttlMs: TTL });
    await world.advance(10 * TTL);
    const renewals = faults.calls.get('keepAlive') ?? 0;
    expect(renewals).toBeGreaterThanOrEqual(29);
    expect(renewals).toBeLessThanOrEqual(30);
    expect(faults.calls.get('openSession')).toBe(1);
    expect(world.store.sessionCount).toBe(1);
  });

  it('C2: leases of another TTL have another session, renewed at its own pace', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    const short = await pawl.acquire('a', { ttlMs: 300 });
    await world.advance(3000);
    expect(short.held).toBe(true);
    expect(faults.calls.get('keepAlive')).toBeGreaterThanOrEqual(29);
    const long = await pawl.acquire('b', { ttlMs: 60_000 });
    expect(long.remainingMs).toBe(60_000);
    expect(world.store.sessionCount).toBe(2);
  });

  it('C2: nothing is renewed any more once all is released, and the session is closed', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    const lease = await pawl.acquire('a', { ttlMs: TTL });
    await lease.release();
    await world.advance(10 * TTL);
    expect(faults.calls.get('keepAlive')).toBeUndefined();
    expect(world.store.sessionCount).toBe(0);
  });

  it('C2: a renewal that fails once is repeated in time; the signal stays quiet', async () => {
    for (const kind of ['refused', 'lost', 'never'] as const) {
      const world = new World();
      const { pawl, faults } = world.process();
      const failed: unknown[] = [];
      pawl.on('renewFailed', (event) => failed.push(event));
      const lease = await pawl.acquire('a', { ttlMs: TTL });
      faults.failNext('keepAlive', { kind });
      await world.advance(5 * TTL);
      expect(lease.held).toBe(true);
      expect(lease.signal.aborted).toBe(false);
      // A remote service gives up on the answer itself.
      expect(failed).toHaveLength(kind === 'never' && World.node === 'local' ? 0 : 1);
    }
  });

  it('C3: at half of the TTL without renewal the signal aborts, for good; the lease itself lasts', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    const atRisk: unknown[] = [];
    pawl.on('atRisk', (event) => atRisk.push(event));
    const lease = await pawl.acquire('a', { ttlMs: TTL });
    faults.unreachable = true;
    await world.advance(TTL / 2 - 1);
    expect(lease.signal.aborted).toBe(false);
    await world.advance(2);
    expect(lease.signal.reason).toMatchObject({ code: 'PAWL_LEASE_AT_RISK' });
    expect(lease.state).toBe('atRisk');
    expect(lease.held).toBe(true);
    lease.assertHeld();
    faults.unreachable = false;
    await world.advance(10 * TTL);
    expect(lease.held).toBe(true);
    expect(lease.signal.reason).toMatchObject({ code: 'PAWL_LEASE_AT_RISK' });
    expect(atRisk).toHaveLength(1);
    await lease.release();
    expect(world.store.size).toBe(0);
  });

  it('C4, C6: at the deadline it is lost, once, and everything says so before anybody is told', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    const lease = await pawl.acquire('a', { ttlMs: TTL });
    const seen: unknown[] = [];
    pawl.on('lost', ({ error }) => seen.push([error.code, lease.held, lease.remainingMs, lease.state]));
    faults.onCall = (method) => (method === 'keepAlive' ? { kind: 'never' } : undefined);
    await world.advance(TTL + 1);
    expect(seen).toEqual([['PAWL_LEASE_LOST', false, 0, 'lost']]);
    expect(faults.calls.get('keepAlive')).toBeGreaterThanOrEqual(2);
    expect(() => lease.assertHeld()).toThrow(code('PAWL_LEASE_LOST'));
    await expect(lease.release()).rejects.toThrow(code('PAWL_LEASE_LOST'));
    const calls = faults.calls.get('keepAlive');
    await world.advance(10 * TTL);
    expect(faults.calls.get('keepAlive')).toBe(calls);
    expect(seen).toHaveLength(1);
    faults.onCall = undefined;
    const next = await world.settle(pawl.acquire('a', { ttlMs: TTL }));
    expect(next.token).toBeGreaterThan(lease.token);
    await world.advance(5 * TTL);
    expect(next.held).toBe(true);
  });

  it('C1: the deadline counts from before the request was sent', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    faults.failNext('openSession', { replyDelayMs: 300 });
    const lease = await world.settle(pawl.acquire('a', { ttlMs: TTL }));
    expect(lease.remainingMs).toBeLessThanOrEqual(TTL - 300);
    faults.failNext('keepAlive', { replyDelayMs: 150 });
    await world.advance(TTL / 3);
    expect(lease.remainingMs).toBeLessThanOrEqual(TTL - 150);
  });

  it('C1: no client believes in its lease longer than the engine does, whatever the delays', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(500), { minLength: 1, maxLength: 12 }), async (delays) => {
        const world = new World();
        const [a, b] = [world.process(), world.process()];
        let call = 0;
        a.faults.onCall = (method) => {
          if (method !== 'keepAlive' && method !== 'openSession') return undefined;
          const delayMs = delays[call++ % delays.length] ?? 0;
          return call % 2 === 0 ? { delayMs } : { replyDelayMs: delayMs };
        };
        const first = await world.settle(a.pawl.acquire('x', { ttlMs: TTL }));
        let second: { token: bigint } | undefined;
        const waiting = b.pawl.acquire('x', { ttlMs: 60_000 }).then((lease) => {
          second = lease;
          expect(first.held).toBe(false);
        });
        await world.advance(3000);
        if (second === undefined) {
          a.faults.onCall = (method) => (method === 'keepAlive' ? { kind: 'refused' } : undefined);
          await world.advance(2 * TTL);
        }
        await waiting;
        await world.settle(a.pawl.close());
        await world.settle(b.pawl.close());
      }),
      { numRuns: 40 },
    );
  });

  it('C1: a machine that slept counts as time passed, and so does a wall clock set forward', async () => {
    for (const happens of ['sleep', 'jump'] as const) {
      const world = new World();
      const { pawl, clock } = world.process();
      const lease = await pawl.acquire('a', { ttlMs: TTL });
      if (happens === 'sleep') await clock.sleep(2 * TTL);
      else clock.jumpWall(2 * TTL);
      expect(() => lease.assertHeld()).toThrow(code('PAWL_LEASE_LOST'));
      expect(lease.signal.reason).toMatchObject({ code: 'PAWL_LEASE_LOST' });
    }
  });

  it('C1: a wall clock set back changes nothing', async () => {
    const world = new World();
    const { pawl, clock, faults } = world.process();
    const lease = await pawl.acquire('a', { ttlMs: TTL });
    clock.jumpWall(-3_600_000);
    await world.advance(5 * TTL);
    expect(lease.held).toBe(true);
    faults.unreachable = true;
    clock.jumpWall(-3_600_000);
    await world.advance(TTL + 1);
    expect(lease.held).toBe(false);
  });

  it('C1: a slow clock of the client is noticed by the engine, which refuses what comes too late', async () => {
    const world = new World();
    const [slow, other] = [world.process({ rate: 0.2 }), world.process()];
    const lease = await slow.pawl.acquire('x', { ttlMs: TTL });
    const second = await world.settle(other.pawl.acquire('x', { ttlMs: TTL }));
    expect(second.token).toBeGreaterThan(lease.token);
    await world.advance(2 * TTL);
    expect(lease.held).toBe(false);
  });

  it('S3: a process that was stopped for too long does not get its lease back', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const lease = await a.pawl.acquire('x', { ttlMs: TTL });
    a.clock.stall();
    const second = await world.settle(b.pawl.acquire('x', { ttlMs: TTL }));
    await second.release();
    a.clock.resume();
    await world.advance(2 * TTL);
    expect(lease.state).toBe('lost');
    expect((await b.pawl.inspect('x')).holders).toEqual([]);
  });

  it('S4: a late release of an old grant leaves the new holder alone', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const old = await a.pawl.acquire('x', { ttlMs: TTL });
    a.clock.stall();
    const second = await world.settle(b.pawl.acquire('x', { ttlMs: TTL }));
    a.clock.resume();
    await expect(old.release()).rejects.toThrow(code('PAWL_LEASE_LOST'));
    await world.advance(100);
    expect((await b.pawl.inspect('x')).holders.map((holder) => holder.token)).toEqual([second.token]);
    expect(await world.process().pawl.tryAcquire('x')).toBeNull();
  });

  it('a second release is an error, and disposing after a release or a loss is silent', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    const lease = await pawl.acquire('a', { ttlMs: TTL });
    const releases = [lease.release(), lease.release()];
    await expect(releases[1]).rejects.toThrow(code('PAWL_NOT_HELD'));
    await releases[0];
    await expect(lease.release()).rejects.toThrow(code('PAWL_NOT_HELD'));
    await lease[Symbol.asyncDispose]();
    expect(() => lease.assertHeld()).toThrow(code('PAWL_NOT_HELD'));
    {
      await using other = await pawl.acquire('b', { ttlMs: TTL });
      expect(other.held).toBe(true);
    }
    expect(world.store.size).toBe(0);
    const lost = await pawl.acquire('c', { ttlMs: TTL });
    faults.unreachable = true;
    await world.advance(2 * TTL);
    await lost[Symbol.asyncDispose]();
  });

  it.each(['r', undefined])(
    'C5: a release whose reply was lost is repeated, and succeeds (id %s)',
    async (requestId) => {
      const world = new World();
      const { pawl, faults } = world.process();
      const lease = await pawl.acquire('a', { ttlMs: 60_000, requestId });
      faults.failNext('commit', { kind: 'lost' });
      await world.settle(lease.release());
      expect(lease.state).toBe('released');
      expect((await pawl.inspect('a')).holders).toEqual([]);
    },
  );

  it('C5: a lock that was taken away before its release, whose reply was lost, is lost', async () => {
    const world = new World();
    const [{ pawl, faults }, other] = [world.process(), world.process()];
    const lease = await pawl.acquire('a', { ttlMs: 60_000 });
    faults.onWake = () => 0;
    await world.settle(other.pawl.breakLock('a', { token: lease.token, reason: 'to see' }));
    faults.failNext('commit', { kind: 'lost' });
    expect(await world.failure(lease.release())).toMatchObject({ code: 'PAWL_LEASE_LOST' });
  });

  it('C5: a release while the engine is away goes on by itself', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const lease = await a.pawl.acquire('x', { ttlMs: 60_000 });
    a.faults.unreachable = true;
    expect(await world.failure(lease.release())).toMatchObject({ code: 'PAWL_OUTCOME_UNKNOWN' });
    a.faults.unreachable = false;
    const second = await world.settle(b.pawl.acquire('x', { waitMs: 3000 }));
    expect(second.token).toBeGreaterThan(lease.token);
  });

  it('L1: a lock-delay keeps the lock shut after a loss, and not after a release', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const lease = await a.pawl.acquire('x', { ttlMs: TTL, lockDelayMs: 5000 });
    await lease.release();
    await (await b.pawl.acquire('x', { waitMs: 0 })).release();
    await a.pawl.acquire('x', { ttlMs: TTL, lockDelayMs: 5000 });
    a.faults.unreachable = true;
    const from = world.time.nowMs;
    const waiting = b.pawl.acquire('x');
    await world.advance(TTL + 100);
    expect((await b.pawl.inspect('x')).holders).toMatchObject([{ lockDelay: true }]);
    await world.settle(waiting);
    expect(world.time.nowMs - from).toBeGreaterThanOrEqual(5000);
    expect(world.time.nowMs - from).toBeLessThanOrEqual(TTL + 5000 + 250);
  });

  it('L1: after close() nobody waits for an expiry', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const lease = await a.pawl.acquire('x', { ttlMs: 60_000, lockDelayMs: 60_000 });
    const waiting = b.pawl.acquire('x');
    await world.advance(10);
    const from = world.time.nowMs;
    await world.settle(a.pawl.close());
    await world.settle(waiting);
    expect(world.time.nowMs - from).toBeLessThan(50);
    expect(lease.state).toBe('released');
    expect(lease.signal.reason).toMatchObject({ code: 'PAWL_CLOSED' });
    await expect(a.pawl.acquire('y')).rejects.toThrow(code('PAWL_CLOSED'));
    await a.pawl.close();
  });

  it('L1: close() turns away whoever waits', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    await a.pawl.acquire('x');
    const waiting = world.failure(b.pawl.acquire('x'));
    await world.advance(10);
    await world.settle(b.pawl.close());
    expect(await waiting).toMatchObject({ code: 'PAWL_CLOSED' });
    expect((await a.pawl.inspect('x')).waiting).toBe(0);
  });

  it('leaves no timers and no entries behind', async () => {
    const world = new World();
    const { pawl, clock } = world.process();
    for (let i = 0; i < 2000; i += 1) await (await pawl.acquire(`x${i % 50}`, { ttlMs: TTL })).release();
    await world.advance(2 * TTL);
    expect(world.store.size).toBe(0);
    expect(world.store.sessionCount).toBe(0);
    expect(clock.pendingTimers).toBe(0);
  });

  it('breaking a lock tells its holder, and names the grant', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const lease = await a.pawl.acquire('x', { ttlMs: TTL });
    const others = await Promise.all(['p', 'q', 'r'].map((name) => a.pawl.acquire(name, { ttlMs: TTL })));
    await expect(b.pawl.breakLock('x', { token: lease.token + 1n, reason: 'wrong' })).rejects.toThrow(
      code('PAWL_NOT_HELD'),
    );
    await b.pawl.breakLock('x', { token: lease.token, reason: 'stuck', by: 'operator' });
    await world.advance(TTL / 3);
    expect(lease.signal.reason).toMatchObject({
      code: 'PAWL_LEASE_LOST',
      message: expect.stringContaining('stuck'),
    });
    expect(others.every((each) => each.held)).toBe(true);
    expect((await a.pawl.inspect('x')).lastBreak).toMatchObject({
      token: lease.token,
      by: 'operator',
      reason: 'stuck',
    });
    const next = await b.pawl.acquire('x');
    expect(next.token).toBeGreaterThan(lease.token);
  });

  it('a broken lock whose news got lost is noticed by the next renewal', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const lease = await a.pawl.acquire('x', { ttlMs: TTL });
    a.faults.onWake = () => 0;
    await b.pawl.breakLock('x', { token: lease.token, reason: 'test' });
    await world.advance(TTL / 3 + 1);
    expect(lease.state).toBe('lost');
  });
});
