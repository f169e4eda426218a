import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from '../../src/client/open.ts';
import { zookeeperEngine } from '../../src/engines/zookeeper/index.ts';
import { engineConformance } from '../../src/testing/index.ts';
import { runDocumented } from './server-tools.ts';
import { seeEachOther } from './two-clients.ts';
import { oneReleaseWakesOne } from './wakes.ts';
import { ensembleOf, haveZooKeeper, MAX_TTL_MS, MIN_TTL_MS, ZooKeeperStores } from './zookeeper-server.ts';

const have = haveZooKeeper();
const stores = new ZooKeeperStores();

const invalid = expect.objectContaining({ code: 'PAWL_INVALID_ARGUMENT' });

describe.skipIf(!have)('with a ZooKeeper server', () => {
  beforeAll(() => stores.server.start(), 90_000);
  afterAll(() => stores.stop(), 60_000);

  engineConformance({
    engine: 'zookeeper',
    describe,
    it: (name, body) => it.concurrent(name, body, 90_000),
    ttlMs: 2000,
    start: async () => {
      const connect = stores.newStore();
      return {
        openEngine: async () => zookeeperEngine({ connect, minTtlMs: MIN_TTL_MS }),
        passTime: (ms) => sleep(ms),
        stop: async () => {},
      };
    },
  });

  it('S1, S2, L2: two clients see each other’s locks, queues and tokens', async () => {
    const connect = stores.newStore();
    await seeEachOther(stores.openEngine(connect), stores.openEngine(connect));
  });

  it('L3: with 1,000 waiters on four nodes one release wakes one of them', async () => {
    const connect = stores.newStore();
    await oneReleaseWakesOne(async () => stores.openEngine(connect));
  }, 120_000);

  it('the documented program runs', () => {
    const address = { ZOOKEEPER: `127.0.0.1:${stores.server.port}` };
    expect(runDocumented('zookeeper', address)).toMatch(/^token \d+\n$/);
  });

  it('S1, S9, L5: a ZooKeeper that is killed and restarted keeps what it granted, and is never reported as held', async () => {
    const connect = stores.newStore();
    const [engine, other] = [stores.openEngine(connect), stores.openEngine(connect)];
    const pawl = open(engine);
    const lease = await pawl.acquire('x', { ttlMs: 60_000 });
    const heard: string[] = [];
    other.subscribe('inbox', (message) => heard.push(message));
    await other.read({ keys: [], ranges: [] });
    await stores.server.kill();
    await expect(pawl.tryAcquire('y')).rejects.toMatchObject({
      code: expect.stringMatching(/PAWL_ENGINE_UNAVAILABLE|PAWL_OUTCOME_UNKNOWN/),
    });
    await stores.server.start();
    await expect
      .poll(() => pawl.inspect('x').catch(() => undefined), { timeout: 30_000 })
      .toMatchObject({ holders: [{ token: lease.token }] });
    await expect
      .poll(
        () =>
          lease.release().then(
            () => 'released',
            () => lease.state,
          ),
        { timeout: 30_000 },
      )
      .toBe('released');
    const next = await pawl.acquire('x');
    expect(next.token).toBeGreaterThan(lease.token);
    const wakes = [{ inbox: 'inbox', message: 'after the restart' }];
    await engine.commit([{ guards: [], alive: [], puts: [], deletes: [], wakes }]);
    await expect.poll(() => heard, { timeout: 30_000 }).toEqual(['after the restart']);
    await pawl.close();
    await other.close();
  }, 120_000);

  it('S3: a session is kept alive by another engine when the first is closed, and by nobody it expires', async () => {
    const connect = stores.newStore();
    const [one, other] = [stores.openEngine(connect), stores.openEngine(connect)];
    const ttlMs = 3000;
    await one.openSession('moving', ttlMs);
    await one.openSession('left', ttlMs);
    await one.close();
    for (let i = 0; i < 6; i += 1) {
      await sleep(ttlMs / 3);
      expect(await other.keepAlive(['moving'])).toEqual(new Set(['moving']));
    }
    expect(await other.keepAlive(['left', 'moving'])).toEqual(new Set(['moving']));
    await sleep(ttlMs + 1000);
    expect(await other.keepAlive(['moving'])).toEqual(new Set());
  });

  it('a TTL that the servers do not keep is refused, not changed', async () => {
    const engine = stores.openEngine(stores.newStore());
    const short = { code: 'PAWL_TTL_TOO_SHORT', minTtlMs: MIN_TTL_MS };
    await expect(engine.openSession('short', MIN_TTL_MS - 1)).rejects.toMatchObject(short);
    await expect(engine.openSession('long', MAX_TTL_MS + 1)).rejects.toThrow(invalid);
    await expect(engine.openSession('longer', 2 ** 31)).rejects.toThrow(invalid);
    expect(await engine.keepAlive(['short', 'long', 'longer'])).toEqual(new Set());
  });

  it('more sessions than maxSessions are refused', async () => {
    const engine = stores.openEngine(stores.newStore(), { maxSessions: 2 });
    for (const id of ['a', 'b']) expect(await engine.openSession(id, 60_000)).toBe(true);
    const refused = { code: 'PAWL_ENGINE_UNAVAILABLE', outcome: 'definite' };
    await expect(engine.openSession('c', 60_000)).rejects.toMatchObject(refused);
    await engine.endSession('a');
    expect(await engine.openSession('c', 60_000)).toBe(true);
  });
});

describe.skipIf(!have)('with three ZooKeeper servers', () => {
  it('S1, S2, S3: any one of them can be lost', async () => {
    const servers = await ensembleOf(3);
    try {
      await Promise.all(servers.map((each) => each.start()));
      const address = (from: number) =>
        [0, 1, 2].map((i) => `127.0.0.1:${servers[(from + i) % 3]?.port}`).join();
      const engines = [0, 1, 2].map((from) => stores.openEngine(address(from)));
      const clients = engines.map((engine) => open(engine));
      expect(await engines[0]?.check?.()).toContainEqual({ setting: 'servers 3', warning: null });
      let last = 0n;
      for (const lost of servers) {
        const lease = await clients[0]?.acquire('x', { ttlMs: 60_000 });
        const waiting = clients[1]?.acquire('x', { ttlMs: 60_000, requestId: `${last}` });
        expect(lease?.token).toBeGreaterThan(last);
        last = lease?.token ?? 0n;
        await expect.poll(async () => (await clients[2]?.inspect('x'))?.waiting, { timeout: 10_000 }).toBe(1);
        await lost.kill();
        const inspected = () => clients[2]?.inspect('x').catch(() => undefined);
        await expect.poll(inspected, { timeout: 30_000 }).toMatchObject({ holders: [{ token: last }] });
        await expect
          .poll(
            () =>
              lease?.release().then(
                () => 'released',
                () => lease.state,
              ),
            { timeout: 30_000 },
          )
          .toBe('released');
        const next = await waiting;
        expect(next?.token).toBeGreaterThan(last);
        last = next?.token ?? 0n;
        await next?.release();
        await lost.start();
      }
      for (const each of [...clients, ...engines]) await each.close();
    } finally {
      for (const each of servers) await each.stop();
    }
  }, 180_000);
});
