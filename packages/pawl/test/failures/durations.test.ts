import { describe, expect, it } from 'vitest';
import type { Lease } from '../../src/client/lease.ts';
import { World } from '../client/world.ts';
import { acquireMessage, ask, client, greeted, running } from '../server/setup.ts';

const SWEEP_MS = 250;

describe('durations', () => {
  const senseless: [string, unknown][] = [
    ['0', 0],
    ['-0', -0],
    ['-1', -1],
    ['0.4', 0.4],
    ['2^53', 2 ** 53],
    ['1e300', 1e300],
    ['a text', '1000'],
    ['null', null],
  ];
  it.each(senseless)(
    'L1: a TTL of %s is refused by the client, on WebSocket and by HTTP alike, and makes nothing',
    async (_what, ttlMs) => {
      const { server } = await running();
      const pawl = await client(server.url);
      await expect(pawl.acquire('x', { ttlMs: ttlMs as number })).rejects.toThrow(
        expect.objectContaining({ code: 'PAWL_INVALID_ARGUMENT', parameter: 'ttlMs' }),
      );
      const raw = await greeted(server.url);
      raw.send({ id: 1, method: 'openSession', params: { ttlMs } });
      expect(await raw.answer(1)).toMatchObject({ error: { code: 'PAWL_INVALID_ARGUMENT' } });
      expect(await ask(server.url, 'POST', '/v1/sessions', { ttlMs })).toMatchObject({
        status: 400,
        body: { code: 'PAWL_INVALID_ARGUMENT' },
      });
      const names: string[] = [];
      for await (const { name } of pawl.list()) names.push(name);
      expect(names).toEqual([]);
    },
  );

  it.each([2 ** 31 - 1, 2 ** 31, 2_592_000_000])(
    'C2: a TTL of %i ms is kept as it is: no early end, and no storm of renewals',
    async (ttlMs) => {
      const world = new World();
      const { pawl, faults } = world.process();
      const lease = await pawl.acquire('x', { ttlMs });
      await world.advance(60_000);
      expect(lease.held).toBe(true);
      expect(lease.remainingMs).toBeGreaterThan(ttlMs - 61_000 - ttlMs / 999);
      expect(faults.calls.get('keepAlive')).toBeUndefined();
      await lease.release();
      const { server } = await running();
      const remote = await client(server.url);
      const real = await remote.acquire('x', { ttlMs });
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(real.held).toBe(true);
      await real.release();
    },
  );

  it('L1: no way in makes a lock without an end: unless a TTL was given it is 10 s', async () => {
    const ways: [string, (pawl: ReturnType<World['process']>['pawl']) => unknown][] = [
      ['acquire', (pawl) => pawl.acquire('x')],
      ['tryAcquire', (pawl) => pawl.tryAcquire('x')],
      ['withLock', (pawl) => pawl.withLock('x', () => new Promise(() => {}))],
      ['semaphore', (pawl) => pawl.semaphore('x', 1).acquire()],
      ['acquireAll', (pawl) => pawl.acquireAll(['x'])],
      ['elect', (pawl) => pawl.elect('x', {}, () => new Promise(() => {}))],
    ];
    for (const [way, take] of ways) {
      const world = new World();
      const [a, b] = [world.process(), world.process()];
      void take(a.pawl);
      await world.advance(0);
      const [holder] = (await b.pawl.inspect('x')).holders;
      expect([way, holder?.token]).toEqual([way, 1n]);
      a.clock.stall();
      const from = world.time.nowMs;
      await world.settle(way === 'semaphore' ? b.pawl.semaphore('x', 1).acquire() : b.pawl.acquire('x'));
      expect(world.time.nowMs - from).toBeLessThanOrEqual(10_000 + SWEEP_MS);
      a.clock.resume();
    }
    const { server } = await running();
    expect((await ask(server.url, 'POST', '/v1/sessions', {})).body).toMatchObject({ ttlMs: 10_000 });
    const raw = await greeted(server.url);
    raw.send(acquireMessage(1, 'no-such-session', 'x'));
    expect(await raw.answer(1)).not.toMatchObject({ result: { kind: 'granted' } });
  });
});

describe('clocks', () => {
  it('S2: wall clocks that are minutes apart neither shorten a lease nor make it longer', async () => {
    for (const [skewA, skewB] of [
      [-180_000, 180_000],
      [180_000, -180_000],
    ] as const) {
      const world = new World();
      const [a, b] = [world.process(), world.process()];
      a.clock.jumpWall(skewA);
      b.clock.jumpWall(skewB);
      const held = await a.pawl.acquire('x', { ttlMs: 2000 });
      await world.advance(10_000);
      expect(await b.pawl.tryAcquire('x')).toBeNull();
      expect(held.held).toBe(true);
      a.clock.stall();
      const from = world.time.nowMs;
      await world.settle(b.pawl.acquire('x', { ttlMs: 2000 }));
      expect(world.time.nowMs - from).toBeGreaterThanOrEqual(2000 * (2 / 3) - 1);
      expect(world.time.nowMs - from).toBeLessThanOrEqual(2000 + SWEEP_MS);
    }
  });

  it('S2, C1: a store that stood still for longer than the TTL with acquires in it grants no two live leases', async () => {
    for (let stalledMs = 0; stalledMs <= 1600; stalledMs += 100) {
      const world = new World();
      const [a, b] = [world.process(), world.process()];
      const until = world.time.nowMs + stalledMs;
      for (const { faults } of [a, b])
        faults.onCall = () => ({ delayMs: Math.max(0, until - world.time.nowMs) });
      const live: Lease[] = [];
      const grant = (lease: Lease) => {
        expect(lease.held).toBe(true);
        expect(live.filter((each) => each.held)).toEqual([]);
        live.push(lease);
      };
      const acquires = [a, b].map(({ pawl }) =>
        pawl.acquire('x', { ttlMs: 400, waitMs: 5000 }).then(grant, (error) => {
          expect(error.code).toMatch(/^PAWL_(ACQUIRE_TIMEOUT|SESSION_ENDED|ENGINE_UNAVAILABLE)$/);
        }),
      );
      await world.advance(stalledMs + 1000);
      await world.settle(Promise.all(live.map((lease) => lease.release())));
      await world.settle(Promise.all(acquires));
    }
  });
});
