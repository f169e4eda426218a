import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SystemClock, sleep, systemClock } from '../../src/clock.ts';
import * as engine from '../../src/engines/redlock/index.ts';
import { Fence, StaleTokenError } from '../../src/fences/index.ts';
import { haveRedis } from './redis-server.ts';
import {
  acquire,
  connect,
  expire,
  kill,
  locks,
  newName,
  onEach,
  redis,
  revive,
  servers,
  setCounters,
  startAll,
  stopAll,
  TTL_MS,
  taken,
  through,
  tryAcquire,
} from './redlock-servers.ts';
import { runDocumented } from './server-tools.ts';

/** An error of Pawl. */
function failure(code: string, more: object = {}) {
  return expect.objectContaining({ code: `PAWL_${code}`, ...more });
}

/** A clock whose wall can be set forward and back. */
class SteppedClock extends SystemClock {
  stepMs = 0;
  override wallMs(): number {
    return super.wallMs() + this.stepMs;
  }
}

describe.skipIf(!haveRedis())('Redlock over five Redis', () => {
  beforeAll(startAll, 60_000);
  afterEach(revive, 60_000);
  afterAll(stopAll);

  it('the documented program runs', () => {
    const urls = servers.map(({ port }) => `redis://127.0.0.1:${port}`).join(',');
    expect(runDocumented('redlock', { REDIS_URLS: urls })).toMatch(/^token \d+\n$/);
  });

  it('S1, S2: contenders of the same instant all get it in the end, one at a time, with rising tokens', async () => {
    const name = newName();
    const tokens: bigint[] = [];
    let inside = 0;
    const contend = async (contender: engine.Redlock) => {
      for (let round = 0; round < 3; round += 1) {
        const lease = await contender.acquire(name, { ttlMs: TTL_MS });
        inside += 1;
        expect(inside).toBe(1);
        tokens.push(lease.token);
        await sleep(systemClock, 2);
        lease.assertHeld();
        inside -= 1;
        await lease.release();
      }
    };
    await Promise.all(Array.from({ length: 6 }, () => contend(locks({ clients: connect() }))));
    expect(tokens).toHaveLength(18);
    for (const [i, token] of tokens.entries()) expect(token).toBeGreaterThan(tokens[i - 1] ?? 0n);
    expect(await taken(name)).toBe(0);
  }, 60_000);

  it('S1: tokens rise where different quorums grant, across crashes', async () => {
    const name = newName();
    let last = 0n;
    for (const absent of ['01', '34', '12', '04']) {
      await kill(...[...absent].map(Number));
      const lease = await acquire(name);
      expect(lease.token).toBeGreaterThan(last);
      last = lease.token;
      await lease.release();
      await revive();
    }
  }, 60_000);

  it('S1: tokens are exact where numbers are not, and grow by a digit', async () => {
    for (const before of ['9', '99999', '9007199254740993', '9223372036854775000']) {
      const name = newName();
      await setCounters(name, before);
      for (const next of [1n, 2n, 3n]) {
        await using lease = await acquire(name);
        expect(lease.token).toBe(BigInt(before) + next);
      }
    }
  });

  it('S1 does not survive the loss of the counters; a fence then refuses the new holder', async () => {
    const [name, fence] = [newName(), new Fence('x')];
    await setCounters(name, '7');
    const lease = await acquire(name);
    fence.raise(lease);
    await lease.release();
    for (const client of redis) await client.del(`redlock:{${name}}:token`);
    await using after = await acquire(name);
    expect(() => fence.raise(after)).toThrow(StaleTokenError);
  });

  it('a Redis whose counter is none counts as failed', async () => {
    const name = newName();
    await setCounters(name, 'abc');
    await expect(tryAcquire(name)).rejects.toEqual(failure('ENGINE_UNAVAILABLE'));
    expect(await taken(name)).toBe(0);
  });

  it('works with a minority down, and tells held from unreachable', async () => {
    const name = newName();
    const unavailable = failure('ENGINE_UNAVAILABLE');
    await kill(1, 3);
    const lease = await acquire(name);
    expect(await tryAcquire(name)).toBeNull();
    expect(await lease.extend()).toBeGreaterThan(0);
    await kill(4);
    await expect(tryAcquire(name)).rejects.toEqual(unavailable);
    await expect(lease.extend()).rejects.toEqual(unavailable);
    lease.assertHeld();
    await expect(lease.release()).rejects.toEqual(unavailable);
    await lease[Symbol.asyncDispose]();
    expect(() => lease.assertHeld()).toThrow(failure('NOT_HELD'));
    await revive();
    await lease.release();
    expect(await taken(name)).toBe(0);
  }, 60_000);

  it('L5, S6: with a majority down it fails with a clear error and leaves nothing on the others', async () => {
    const name = newName();
    await kill(0, 2, 4);
    const clear = failure('ENGINE_UNAVAILABLE', { outcome: 'definite', retryable: true });
    await expect(acquire(name, { waitMs: 600_000 })).rejects.toEqual(clear);
    await expect(tryAcquire(name)).rejects.toEqual(clear);
    expect(await taken(name)).toBe(0);
  }, 60_000);

  it('S6: a minority that hangs is not waited for; what comes late leaves nothing and lowers nothing', async () => {
    const name = newName();
    await redis[0]?.set(`redlock:{${name}}:token`, '100');
    for (const hanging of [2, 3]) {
      const { promise: gate, resolve: openGate } = Promise.withResolvers<void>();
      const clients = through((i) => (i < hanging ? gate : undefined));
      const trying = tryAcquire(name, { clients, instanceTimeoutMs: hanging === 2 ? 10_000 : 200 });
      if (hanging === 3) await expect(trying).rejects.toEqual(failure('ENGINE_UNAVAILABLE'));
      const released = hanging === 2 ? (await trying)?.release() : undefined;
      openGate();
      await released;
      expect(await taken(name)).toBe(0);
      expect(await redis[0]?.get(`redlock:{${name}}:token`)).toBe('100');
    }
  });

  it('S4: a release never touches another’s lock, and may be repeated', async () => {
    const name = newName();
    const first = await acquire(name);
    await expire(name, 0, 1, 2, 3, 4);
    const second = await acquire(name);
    await first.release();
    await first.release();
    expect(await taken(name)).toBe(5);
    second.assertHeld();
    await Promise.all([second.release(), second.release()]);
    expect(() => second.assertHeld()).toThrow(failure('NOT_HELD'));
    await expect(second.extend()).rejects.toEqual(failure('NOT_HELD'));
    expect(await taken(name)).toBe(0);
  });

  it('an abandoned lock ends by itself', async () => {
    const name = newName();
    const first = await acquire(name, { ttlMs: 300 });
    const second = await acquire(name);
    expect(() => first.assertHeld()).toThrow(failure('LEASE_LOST'));
    await first.release();
    expect(await taken(name)).toBeGreaterThanOrEqual(3);
    await second.release();
  });

  it('an extension begins the TTL anew; one that a majority refuses is a loss, for good', async () => {
    const name = newName();
    const lease = await acquire(name);
    await onEach('PEXPIRE', name, '30000');
    const { deadline } = lease;
    await sleep(systemClock, 50);
    expect(await lease.extend()).toBeLessThanOrEqual(TTL_MS * 0.99 - 2);
    expect(lease.deadline).toBeGreaterThan(deadline + 25);
    for (const leftMs of await onEach('PTTL', name)) expect(leftMs).toBeGreaterThan(30_000);
    await expire(name, 0, 1);
    expect(await lease.extend()).toBeGreaterThan(0);
    await expire(name, 2);
    await expect(lease.extend()).rejects.toEqual(failure('LEASE_LOST'));
    expect(() => lease.assertHeld()).toThrow(failure('LEASE_LOST'));
    expect(lease.remainingMs).toBe(0);
    await lease.release();
    expect(await taken(name)).toBe(0);
  });

  it('S6: an acquire whose wait is over leaves nothing', async () => {
    const name = newName();
    const lease = await acquire(name);
    await expire(name, 0, 1);
    await expect(acquire(name, { waitMs: 100 })).rejects.toEqual(failure('ACQUIRE_TIMEOUT'));
    await expect(acquire(name, { waitMs: 0 })).rejects.toEqual(failure('HELD'));
    expect(await taken(name)).toBe(3);
    await lease.release();
    expect(await taken(name)).toBe(0);
  });

  it('S6: an abort leaves nothing, also of a grant that won the race', async () => {
    const name = newName();
    const cause = new Error('enough');
    const aborted = failure('ACQUIRE_ABORTED', { cause });
    await expect(acquire(name, { signal: AbortSignal.abort(cause) })).rejects.toEqual(aborted);
    const [winning, waiting] = [new AbortController(), new AbortController()];
    const clients = through(() => winning.abort(cause));
    const race = locks({ clients }).acquire(name, { ttlMs: TTL_MS, signal: winning.signal });
    await expect(race).rejects.toEqual(aborted);
    expect(await taken(name)).toBe(0);
    await using _holder = await acquire(name);
    const patient = locks({ retryDelayMs: 3_600_000 });
    setTimeout(() => waiting.abort(cause), 100);
    const wait = patient.acquire(name, { ttlMs: TTL_MS, signal: waiting.signal });
    await expect(wait).rejects.toEqual(aborted);
  });

  it('C1, C4: the validity ends by the larger of both clocks, for good', async () => {
    const clock = new SteppedClock();
    const lease = await locks({ clock }).acquire(newName(), { ttlMs: TTL_MS });
    clock.stepMs = -TTL_MS;
    lease.assertHeld();
    for (const stepMs of [TTL_MS, 0]) {
      clock.stepMs = stepMs;
      expect(() => lease.assertHeld()).toThrow(failure('LEASE_LOST'));
    }
    await expect(lease.extend()).rejects.toEqual(failure('LEASE_LOST'));
    await lease.release();
  });

  it('a quorum that comes too late is no grant: acquire tries again, tryAcquire says so', async () => {
    const [name, clock] = [newName(), new SteppedClock()];
    let calls = 0;
    // Steps while the token of the first attempt is being confirmed.
    const clients = through(() => {
      calls += 1;
      if (calls === 6) clock.stepMs += TTL_MS;
    });
    await expect(tryAcquire(name, { clients, clock })).rejects.toThrow(/TTL/);
    expect(await taken(name)).toBe(0);
    calls = 0;
    await using lease = await locks({ clients, clock }).acquire(name, { ttlMs: TTL_MS });
    lease.assertHeld();
    expect(calls).toBeGreaterThan(10);
  });

  it('S7: where clocks step on a majority two hold at once, and only a fence refuses the first', async () => {
    const [name, fence] = [newName(), new Fence('x')];
    await using first = await acquire(name);
    fence.write(first, () => 'first');
    await expire(name, 0, 1, 2);
    await using second = await acquire(name);
    first.assertHeld();
    second.assertHeld();
    expect(second.token).toBeGreaterThan(first.token);
    fence.write(second, () => 'second');
    expect(() => fence.write(first, () => 'too late')).toThrow(StaleTokenError);
  });

  it('refuses senseless arguments', async () => {
    const invalid = failure('INVALID_ARGUMENT');
    for (const clients of [[], [redis[0], redis[0]], [{}], 'x']) {
      expect(() => engine.redlock({ clients: clients as Redis[] })).toThrow(invalid);
    }
    for (const wrong of [{ prefix: '{x}' }, { retryDelayMs: 0 }, { instanceTimeoutMs: 1.5 }]) {
      expect(() => locks(wrong)).toThrow(invalid);
    }
    for (const wrong of [{ ttlMs: 0 }, { waitMs: -1 }, { signal: {} as AbortSignal }]) {
      await expect(acquire('x', wrong)).rejects.toEqual(invalid);
    }
    await expect(tryAcquire('')).rejects.toEqual(invalid);
    await expect(acquire('x', { ttlMs: 99 })).rejects.toEqual(failure('TTL_TOO_SHORT', { minTtlMs: 100 }));
  });
});
