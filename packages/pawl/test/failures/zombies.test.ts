import { describe, expect, it } from 'vitest';
import { Fence } from '../../src/fences/index.ts';
import { type Process, World } from '../client/world.ts';

const TTL = 400;

/** A resource that notes who wrote, and refuses lower tokens. */
class Resource {
  readonly fence = new Fence('file');
  readonly written: bigint[] = [];
  readonly refused: bigint[] = [];

  write(token: bigint): void {
    try {
      this.fence.write(token, () => this.written.push(token));
    } catch (error) {
      expect(error).toMatchObject({ code: 'PAWL_STALE_TOKEN', token, highest: this.fence.highest });
      this.refused.push(token);
    }
  }
}

const pause = ({ clock }: Process, ms: number) =>
  new Promise<void>((resolve) => void clock.setTimer(ms, resolve));

describe('a holder that goes on', () => {
  it('C3, S7: cut off, its signal fires before the next grant, and what it writes after the next one’s first write is refused', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const file = new Resource();
    const held = await a.pawl.acquire('x', { ttlMs: TTL });
    let stop = false;
    const zombie = (async () => {
      for (; !stop; await pause(a, 50)) file.write(held.token);
    })();
    a.faults.unreachable = true;
    const next = await world.settle(
      b.pawl.acquire('x', { ttlMs: TTL }).then((lease) => {
        expect([held.signal.aborted, held.held]).toEqual([true, false]);
        return lease;
      }),
    );
    file.write(next.token);
    await world.advance(1000);
    stop = true;
    await world.advance(50);
    await zombie;
    expect(file.written.at(-1)).toBe(next.token);
    expect(file.refused.length).toBeGreaterThan(10);
    expect(new Set(file.refused)).toEqual(new Set([held.token]));
  });

  it('S7: a leader that ignores its signal writes nothing more once the next one leads, and its campaign goes on only after it ended', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const file = new Resource();
    const stop = new AbortController();
    const reigns: [string, bigint][] = [];
    const campaign = (who: string, by: Process, rounds: number) =>
      by.pawl.elect('leader', { ttlMs: TTL, signal: stop.signal }, async ({ token }) => {
        reigns.push([who, token]);
        file.fence.raise(token);
        for (let i = 0; i < rounds && !stop.signal.aborted; i += 1) {
          file.write(token);
          await pause(by, 50);
        }
        return who;
      });
    const first = campaign('a', a, 40);
    first.catch(() => {});
    await world.advance(100);
    const second = campaign('b', b, 10_000);
    second.catch(() => {});
    a.faults.unreachable = true;
    await world.advance(1000);
    a.faults.unreachable = false;
    expect(reigns.map(([who]) => who)).toEqual(['a', 'b']);
    const [[, low], [, high]] = reigns as [[string, bigint], [string, bigint]];
    await world.advance(500);
    expect(file.refused.length).toBeGreaterThan(0);
    expect(new Set(file.refused)).toEqual(new Set([low]));
    expect(file.written).toEqual(file.written.toSorted((x, y) => Number(x - y)));
    expect(file.fence.highest).toBe(high);
    // The first leader ended after its loss: what it returned is no result of a leadership.
    await world.advance(2000);
    stop.abort();
    expect(await world.failure(first)).toMatchObject({ code: 'PAWL_ACQUIRE_ABORTED' });
  });

  it('S1, S7: tokens are of the grant, not of the process: its own earlier hold, and a write delayed from it, are refused', async () => {
    const world = new World();
    const one = world.process();
    const file = new Resource();
    const first = await one.pawl.acquire('x', { ttlMs: TTL });
    one.faults.unreachable = true;
    await world.advance(TTL + 1);
    one.faults.unreachable = false;
    const second = await world.settle(one.pawl.acquire('x', { ttlMs: TTL }));
    expect(second.token).toBeGreaterThan(first.token);
    file.write(second.token);
    // What the first grant had sent comes only now.
    file.write(first.token);
    expect([file.written, file.refused]).toEqual([[second.token], [first.token]]);
    expect(await world.failure(first.release())).toMatchObject({ code: 'PAWL_LEASE_LOST' });
    expect(second.held).toBe(true);
    expect((await one.pawl.inspect('x')).holders.map(({ token }) => token)).toEqual([second.token]);
  });

  it('S4, S7: learns it everywhere: from its deadline, its release and the resource, which names the newer token', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const old = await a.pawl.acquire('x', { ttlMs: TTL });
    a.clock.stall();
    const next = await world.settle(b.pawl.acquire('x', { ttlMs: TTL }));
    const fence = new Fence('file');
    fence.write(next, () => {});
    a.clock.resume();
    expect(() => old.assertHeld()).toThrow(expect.objectContaining({ code: 'PAWL_LEASE_LOST' }));
    expect(await world.failure(old.release())).toMatchObject({ code: 'PAWL_LEASE_LOST', token: old.token });
    expect(() => fence.write(old, () => {})).toThrow(
      expect.objectContaining({ code: 'PAWL_STALE_TOKEN', token: old.token, highest: next.token }),
    );
  });

  it('S7: of a lock that was broken is told by its signal, and refused once the next one has written', async () => {
    const world = new World();
    const [a, b] = [world.process(), world.process()];
    const file = new Resource();
    const held = await a.pawl.acquire('x', { ttlMs: TTL });
    let toldAfterMs = -1;
    const from = world.time.nowMs;
    held.signal.addEventListener('abort', () => {
      toldAfterMs = world.time.nowMs - from;
    });
    const work = (async () => {
      for (let i = 0; i < 10; i += 1) {
        file.write(held.token);
        await pause(a, 30);
      }
    })();
    const waiting = b.pawl.acquire('x', { ttlMs: TTL });
    await world.advance(40);
    await b.pawl.breakLock('x', { token: held.token, reason: 'cancelled' });
    const next = await world.settle(waiting);
    expect(next.token).toBeGreaterThan(held.token);
    file.write(next.token);
    await world.settle(work);
    expect(toldAfterMs).toBeGreaterThanOrEqual(0);
    expect(toldAfterMs).toBeLessThanOrEqual(40 + TTL / 3);
    expect(new Set(file.refused)).toEqual(new Set([held.token]));
    expect(file.written.at(-1)).toBe(next.token);
  });
});

describe('work under a lock', () => {
  it('S6: is released however it ends: early, by an error, or after it was told to stop', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    expect(await pawl.withLock('x', () => undefined)).toBeUndefined();
    await expect(pawl.withLock('x', () => Promise.reject(undefined))).rejects.toBeUndefined();
    const stop = new AbortController();
    const hanging = pawl.withLock('x', { ttlMs: TTL }, () => untilAborted(stop.signal));
    await world.advance(3 * TTL);
    stop.abort(new Error('enough'));
    expect(await world.failure(hanging)).toMatchObject({ message: 'enough' });
    expect(world.store.size).toBe(0);
    const lost = pawl.withLock('x', { ttlMs: TTL }, (lease) => untilAborted(lease.signal));
    await world.advance(10);
    faults.unreachable = true;
    await world.advance(TTL / 2);
    faults.unreachable = false;
    expect(await world.failure(lost)).toMatchObject({ code: 'PAWL_LEASE_AT_RISK' });
    await world.advance(2 * TTL);
    expect(world.store.size).toBe(0);
  });
});

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });
}
