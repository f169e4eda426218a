import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from '../../src/client/open.ts';
import { type RedisConnection, redisEngine } from '../../src/engines/redis/index.ts';
import { engineConformance } from '../../src/testing/index.ts';
import { haveRedis, RedisServer } from './redis-server.ts';
import { runDocumented } from './server-tools.ts';

const have = haveRedis();
const server = new RedisServer();
const clients: Redis[] = [];
let stores = 0;

function newPrefix(): string {
  stores += 1;
  return `store-${stores}`;
}

function connect(): Redis {
  const client = new Redis({
    port: server.port,
    host: '127.0.0.1',
    maxRetriesPerRequest: 1,
    retryStrategy: () => 50,
  });
  client.on('error', () => {});
  clients.push(client);
  return client;
}

describe.skipIf(!have)('with a Redis server', () => {
  beforeAll(() => server.start(true), 60_000);
  afterAll(async () => {
    for (const client of clients) client.disconnect();
    await server.stop();
  });

  engineConformance({
    engine: 'redis',
    describe,
    it,
    ttlMs: 800,
    start: async () => {
      const client = connect();
      const prefix = newPrefix();
      return {
        openEngine: async () => redisEngine({ client, prefix }),
        passTime: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
        stop: async () => {},
      };
    },
  });

  it('S1, S2, L2: two clients see each other’s locks, queues and tokens', async () => {
    const prefix = newPrefix();
    const [one, other] = [
      redisEngine({ client: connect(), prefix }),
      redisEngine({ client: connect(), prefix }),
    ];
    const [a, b] = [open(one), open(other)];
    const first = await a.acquire('x');
    expect(await b.tryAcquire('x')).toBeNull();
    const waiting = b.acquire('x', { waitMs: 10_000 });
    for await (const state of a.watch('x', { everyMs: 10 })) if (state.waiting === 1) break;
    await first.release();
    const second = await waiting;
    expect(second.token).toBeGreaterThan(first.token);
    expect((await a.inspect('x')).holders.map((holder) => holder.token)).toEqual([second.token]);
    for (const each of [a, b, one, other]) await each.close();
  });

  it('S1, S9, L5: a Redis that is killed and restarted keeps what it flushed, and is never reported as held', async () => {
    const engine = redisEngine({ client: connect(), prefix: newPrefix() });
    const pawl = open(engine);
    const lease = await pawl.acquire('x', { ttlMs: 60_000 });
    await server.kill();
    await expect(pawl.tryAcquire('y')).rejects.toMatchObject({
      code: expect.stringMatching(/PAWL_ENGINE_UNAVAILABLE|PAWL_OUTCOME_UNKNOWN/),
    });
    await server.start(true);
    await expect
      .poll(() => pawl.inspect('x').catch(() => undefined), { timeout: 15_000 })
      .toMatchObject({
        holders: [{ token: lease.token }],
      });
    await expect
      .poll(
        () =>
          lease.release().then(
            () => 'released',
            () => lease.state,
          ),
        { timeout: 15_000 },
      )
      .toBe('released');
    const next = await pawl.acquire('x');
    expect(next.token).toBeGreaterThan(lease.token);
    await pawl.close();
    await engine.close();
  }, 60_000);

  it('the documented program runs', () => {
    expect(runDocumented('redis', { REDIS_URL: `redis://127.0.0.1:${server.port}` })).toMatch(
      /^token \d+\n$/,
    );
  });

  it('refuses what is no client, and a senseless prefix', () => {
    const invalid = expect.objectContaining({ code: 'PAWL_INVALID_ARGUMENT' });
    expect(() => redisEngine({ client: {} as RedisConnection })).toThrow(invalid);
    for (const prefix of ['', 'a b', '{x}', 'x'.repeat(65)]) {
      expect(() => redisEngine({ client: connect(), prefix })).toThrow(invalid);
    }
  });
});
