import { Cluster, Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { open } from '../../src/client/open.ts';
import { type RedisConnection, type RedisEngineOptions, redisEngine } from '../../src/engines/redis/index.ts';
import { engineConformance, SimulatedTime } from '../../src/testing/index.ts';
import { haveRedis, RedisServer } from './redis-server.ts';
import { freePort, runDocumented } from './server-tools.ts';
import { seeEachOther } from './two-clients.ts';
import { oneReleaseWakesOne } from './wakes.ts';

type Client = RedisEngineOptions['client'];

const have = haveRedis();
const server = new RedisServer();
const disconnects: (() => void)[] = [];
let stores = 0;

function newPrefix(): string {
  stores += 1;
  return `store-${stores}`;
}

function connect(settings: { maxRetriesPerRequest?: null } = {}): Redis {
  const client = new Redis({
    port: server.port,
    host: '127.0.0.1',
    maxRetriesPerRequest: 1,
    retryStrategy: () => 50,
    ...settings,
  });
  client.on('error', () => {});
  disconnects.push(() => client.disconnect());
  return client;
}

async function connectNodeRedis(): Promise<Client> {
  const client = createClient({ url: `redis://127.0.0.1:${server.port}` });
  client.on('error', () => {});
  await client.connect();
  disconnects.push(() => client.destroy());
  return client;
}

function conformance(name: string, client: () => Promise<Client>): void {
  describe(name, () => {
    engineConformance({
      engine: 'redis',
      describe,
      it: (title, body) => it.concurrent(title, body, 60_000),
      ttlMs: 1500,
      start: async () => {
        const prefix = newPrefix();
        return {
          openEngine: async () => redisEngine({ client: await client(), prefix }),
          passTime: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
          stop: async () => {},
        };
      },
    });
  });
}

function shareStore(one: Client, other: Client): Promise<void> {
  const prefix = newPrefix();
  return seeEachOther(redisEngine({ client: one, prefix }), redisEngine({ client: other, prefix }));
}

describe.skipIf(!have)('with a Redis server', () => {
  beforeAll(() => server.start(true), 60_000);
  afterAll(async () => {
    for (const disconnect of disconnects) disconnect();
    await server.stop();
  });

  conformance('ioredis', async () => connect());
  conformance('node-redis', connectNodeRedis);

  it('S1, S2, L2: two clients see each other’s locks, queues and tokens, whichever driver they use', async () => {
    await shareStore(connect(), connect());
    await shareStore(connect(), await connectNodeRedis());
  });

  it('L3: with 1,000 waiters on four nodes one release wakes one of them', async () => {
    const prefix = newPrefix();
    await oneReleaseWakesOne(async () => redisEngine({ client: connect(), prefix }));
  }, 90_000);

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

  it('C5: a commit that a driver sends twice, since its connection was lost before the answer, is answered as it was', async () => {
    const client = new Redis({ port: server.port, host: '127.0.0.1', retryStrategy: () => 10 });
    client.on('error', () => {});
    disconnects.push(() => client.disconnect());
    const engine = redisEngine({ client, prefix: newPrefix() });
    const witness = redisEngine({ client: connect(), prefix: `store-${stores}` });
    const write = (key: string) => ({
      guards: [{ key, version: null }],
      alive: [],
      puts: [{ key, value: '1' }],
      deletes: [],
      wakes: [],
    });
    await engine.commit([write('before')]);
    for (const key of ['first', 'second']) {
      client.stream.pause();
      const answer = engine.commit([write('before'), write(key)]);
      const entry = async () => (await witness.read({ keys: [key], ranges: [] })).entries.get(key);
      await expect.poll(entry).toBeDefined();
      client.stream.destroy();
      const version = (await entry())?.version;
      expect(await answer).toEqual([
        { kind: 'conflict', keys: ['before'] },
        { kind: 'committed', version },
      ]);
    }
    // Of several under way only the last is known; of the others nobody can tell.
    client.stream.pause();
    const answers = Promise.allSettled([engine.commit([write('third')]), engine.commit([write('fourth')])]);
    await expect.poll(async () => (await witness.list('fourth', 1)).length).toBe(1);
    client.stream.destroy();
    expect(await answers).toMatchObject([
      { reason: { code: 'PAWL_ENGINE_UNAVAILABLE', outcome: 'indefinite' } },
      { value: [{ kind: 'committed' }] },
    ]);
    await engine.close();
    await witness.close();
  });

  it.each([
    ['ioredis', async () => connect({ maxRetriesPerRequest: null })],
    ['node-redis', connectNodeRedis],
  ] as const)(
    'L5: where %s gets no connection to listen on, calls fail and it can be closed',
    async (_, client) => {
      const [admin, time, prefix] = [connect(), new SimulatedTime(), newPrefix()];
      const engine = redisEngine({ client: await client(), prefix, clock: time.clock() });
      await engine.read({ keys: [], ranges: [] });
      await admin.call('CONFIG', 'SET', 'maxclients', 1);
      try {
        engine.subscribe('inbox', () => {});
        const read = engine.read({ keys: [], ranges: [] }).catch((error: unknown) => error);
        await time.advance(6000);
        expect(await read).toMatchObject({ code: 'PAWL_ENGINE_UNAVAILABLE', outcome: 'definite' });
        await engine.close();
      } finally {
        await admin.call('CONFIG', 'SET', 'maxclients', 10_000);
      }
    },
  );

  it('says what can be lost by how Redis is run', async () => {
    const client = connect();
    const engine = redisEngine({ client, prefix: newPrefix() });
    const warnings = async () =>
      ((await engine.check?.()) ?? [])
        .filter(({ warning }) => warning !== null)
        .map(({ setting }) => setting);
    expect(await warnings()).toEqual([]);
    await client.config('SET', 'appendfsync', 'everysec');
    await client.config('SET', 'maxmemory', '100mb');
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    expect(await warnings()).toEqual(['appendfsync everysec', 'maxmemory-policy allkeys-lru']);
    await client.config('SET', 'appendonly', 'no');
    expect(await warnings()).toEqual(['appendonly no', 'maxmemory-policy allkeys-lru']);
    await client.config('SET', 'maxmemory', '0');
    await client.config('SET', 'appendonly', 'yes');
    await client.config('SET', 'appendfsync', 'always');
    await engine.close();
  });

  it('a layout of a newer Pawl, and one that is none, are refused', async () => {
    const client = connect();
    const [newer, none] = [newPrefix(), newPrefix()];
    await client.set(`{${newer}}:format`, '2');
    await client.set(`{${none}}:format`, 'what?');
    for (const [prefix, code] of [
      [newer, 'PAWL_STORE_VERSION'],
      [none, 'PAWL_STORE_CORRUPT'],
    ] as const) {
      const engine = redisEngine({ client, prefix });
      await expect(engine.read({ keys: ['x'], ranges: [] })).rejects.toMatchObject({ code });
      await engine.close();
    }
  });

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

describe.skipIf(!have)('on a cluster of three Redis', () => {
  const nodes = [new RedisServer(), new RedisServer(), new RedisServer()];
  const clusters: Cluster[] = [];
  const connectCluster = () => {
    const cluster = new Cluster(nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
    cluster.on('error', () => {});
    clusters.push(cluster);
    return cluster;
  };

  beforeAll(async () => {
    // The nodes talk to each other on ports of their own, which would be too high if they were derived from the others.
    const buses = await Promise.all(nodes.map(() => freePort()));
    await Promise.all(
      nodes.map((node, i) =>
        node.start(false, ['--cluster-enabled', 'yes', '--cluster-port', `${buses[i]}`]),
      ),
    );
    const admins = nodes.map(({ port }) => new Redis({ port, host: '127.0.0.1' }));
    const slots = [0, 5461, 10923, 16384];
    for (const [i, admin] of admins.entries()) {
      await admin.cluster('ADDSLOTSRANGE', slots[i] ?? 0, (slots[i + 1] ?? 0) - 1);
      await admin.cluster('MEET', '127.0.0.1', nodes[0]?.port ?? 0, buses[0] ?? 0);
    }
    for (const admin of admins) {
      const settled = async () =>
        expect(await admin.cluster('INFO')).toMatch(/cluster_state:ok[\s\S]*cluster_known_nodes:3/);
      await vi.waitFor(settled, { timeout: 30_000, interval: 100 });
      admin.disconnect();
    }
  }, 60_000);
  afterAll(async () => {
    for (const cluster of clusters) cluster.disconnect();
    await Promise.all(nodes.map((node) => node.stop()));
  });

  it('S1, S2, L2: locks of several prefixes lie on several nodes, and clients see each other’s', async () => {
    for (let i = 0; i < 4; i += 1) await shareStore(connectCluster(), connectCluster());
  });
});
