import { describe, expect, it } from 'vitest';
import { World } from './world.ts';

/* What happens between two steps of a promise is heard of by no listener that is added after it. Every such moment is tried. */

const MOMENTS = Array.from({ length: 40 }, (_, i) => i);

async function microtasks(count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) await undefined;
}

describe('at any moment of an acquire', () => {
  it('S6: its abort ends it, also where its session is opened first, and leaves nothing', async () => {
    const world = new World();
    const holder = world.process();
    await holder.pawl.acquire('x', { ttlMs: 60_000 });
    for (const moment of MOMENTS) {
      const { pawl } = world.process();
      const abort = new AbortController();
      const acquiring = world.failure(pawl.acquire('x', { signal: abort.signal }), 30_000);
      await microtasks(moment);
      abort.abort();
      expect(await acquiring, `after ${moment}`).toMatchObject({ code: 'PAWL_ACQUIRE_ABORTED' });
      expect((await holder.pawl.inspect('x')).waiting).toBe(0);
    }
  });

  it('S6: an abort that comes while a session is awaited to be fresh is heard by the new start after its end', async () => {
    const world = new World();
    const [holder, { pawl, faults }] = [world.process(), world.process()];
    const ttlMs = 2000;
    await pawl.acquire('y', { ttlMs });
    const abort = new AbortController();
    // Granted when less than half of the TTL is left, and nothing is renewed after that.
    faults.onCall = (method) => (method === 'keepAlive' ? { kind: 'refused' } : undefined);
    faults.failNext('commit', { replyDelayMs: 1200 });
    const acquiring = world.failure(pawl.acquire('x', { ttlMs, signal: abort.signal }), 30_000);
    await world.advance(1500);
    abort.abort();
    await world.advance(1000);
    faults.onCall = undefined;
    await world.advance(3000);
    await holder.pawl.acquire('x', { waitMs: 0 });
    expect(await acquiring).toMatchObject({ code: 'PAWL_ACQUIRE_ABORTED' });
  });

  it('L1: the end of its client ends it, and nothing is held after that', async () => {
    for (const moment of MOMENTS) {
      const world = new World();
      const [holder, { pawl, faults }] = [world.process(), world.process()];
      await holder.pawl.acquire('x', { ttlMs: 60_000 });
      // Its session is alive for a while after it was closed, and may come to stand in a queue.
      faults.failNext('endSession', { delayMs: 100 });
      const acquiring = pawl.acquire('y');
      const waiting = world.failure(pawl.acquire('x'), 30_000);
      await microtasks(moment);
      const closing = pawl.close();
      const lease = await world.settle(acquiring.catch(() => undefined));
      await world.settle(closing);
      expect(lease?.held ?? false, `after ${moment}`).toBe(false);
      expect(await waiting, `after ${moment}`).toMatchObject({ code: 'PAWL_CLOSED' });
      expect(await holder.pawl.inspect('y')).toMatchObject({ holders: [], waiting: 0 });
    }
  });
});

describe('a grant that is broken before it is handed out', () => {
  it('C4: fails its acquire: no lease of it is believed in', async () => {
    const world = new World();
    const [one, { pawl, faults }] = [world.process(), world.process()];
    const ttlMs = 3000;
    const held = await one.pawl.acquire('x');
    const kept = await pawl.acquire('y', { ttlMs });
    const acquiring = world.failure(pawl.acquire('x', { ttlMs }));
    await world.advance(10);
    // Less than half of the TTL is left when it is granted, so its client renews the session before it believes in the grant.
    faults.onCall = (method) => (method === 'keepAlive' ? { kind: 'refused' } : undefined);
    await world.advance(1600);
    await held.release();
    await world.advance(20);
    const [holder] = (await one.pawl.inspect('x')).holders;
    await one.pawl.breakLock('x', { token: holder?.token ?? 0n, reason: 'test' });
    await world.advance(20);
    faults.onCall = undefined;
    expect(await acquiring).toMatchObject({ code: 'PAWL_REQUEST_FINISHED' });
    expect(kept.held).toBe(true);
  });
});

describe('at any moment of a resumption', () => {
  it('C4: the end of its client leaves nothing that is believed to be held', async () => {
    for (const moment of MOMENTS) {
      const world = new World();
      const [from, { pawl }] = [world.process(), world.process()];
      const text = await (await from.pawl.acquire('x')).export();
      const resuming = pawl.resume(text).catch(() => undefined);
      await microtasks(moment);
      const closing = pawl.close();
      const lease = await world.settle(resuming);
      await world.settle(closing);
      expect(lease?.held ?? false, `after ${moment}`).toBe(false);
    }
  });
});
