import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from '../../src/client/open.ts';
import { systemClock } from '../../src/clock.ts';
import type { ConditionalWrite, Engine } from '../../src/engines/engine.ts';
import { type ZooKeeperEngineOptions, zookeeperEngine } from '../../src/engines/zookeeper/index.ts';
import { Keeper } from '../../src/engines/zookeeper/keeper.ts';
import { checkOptions } from '../../src/engines/zookeeper/options.ts';
import {
  ANY_VERSION,
  childrenOperation,
  dataOperation,
  deleteOperation,
  setOperation,
} from '../../src/engines/zookeeper/protocol.ts';
import { engineConformance } from '../../src/testing/index.ts';
import { ensembleOf, haveZooKeeper, MAX_TTL_MS, MIN_TTL_MS, ZooKeeperServer } from './zookeeper-server.ts';

const have = haveZooKeeper();
const server = new ZooKeeperServer();
const closing: (() => Promise<void>)[] = [];
let stores = 0;

/** The address of a store that nobody uses. */
function newStore(): string {
  stores += 1;
  return `127.0.0.1:${server.port}/pawl/store-${stores}`;
}

function openEngine(connect: string, options: Partial<ZooKeeperEngineOptions> = {}): Engine {
  const engine = zookeeperEngine({ connect, minTtlMs: MIN_TTL_MS, ...options });
  closing.push(() => engine.close());
  return engine;
}

/** ZooKeeper as anybody else sees it. */
function openKeeper(): Keeper {
  const keeper = new Keeper(checkOptions({ connect: `127.0.0.1:${server.port}` }).access, systemClock);
  closing.push(() => keeper.close());
  return keeper;
}

function pathOf(connect: string): string {
  return connect.slice(connect.indexOf('/'));
}

function write(parts: Partial<ConditionalWrite>): ConditionalWrite {
  return { guards: [], alive: [], puts: [], deletes: [], wakes: [], ...parts };
}

async function put(engine: Engine, key: string, value: string): Promise<bigint> {
  const [result] = await engine.commit([write({ puts: [{ key, value }] })]);
  return result?.kind === 'committed' ? result.version : 0n;
}

const invalid = expect.objectContaining({ code: 'PAWL_INVALID_ARGUMENT' });

describe.skipIf(!have)('with a ZooKeeper server', () => {
  beforeAll(() => server.start(), 90_000);
  afterAll(async () => {
    for (const close of closing) await close();
    await server.stop();
  }, 60_000);

  engineConformance({
    engine: 'zookeeper',
    describe,
    it,
    // 1,000 sessions are opened one after the other within two of these.
    ttlMs: 3000,
    start: async () => {
      const connect = newStore();
      return {
        openEngine: async () => zookeeperEngine({ connect, minTtlMs: MIN_TTL_MS }),
        passTime: (ms) => sleep(ms),
        stop: async () => {},
      };
    },
  });

  it('S1, S2, L2: two clients see each other’s locks, queues and tokens', async () => {
    const connect = newStore();
    const [a, b] = [open(openEngine(connect)), open(openEngine(connect))];
    const first = await a.acquire('x');
    expect(await b.tryAcquire('x')).toBeNull();
    const waiting = b.acquire('x', { waitMs: 10_000 });
    for await (const state of a.watch('x', { everyMs: 10 })) if (state.waiting === 1) break;
    await first.release();
    const second = await waiting;
    expect(second.token).toBeGreaterThan(first.token);
    expect((await a.inspect('x')).holders.map((holder) => holder.token)).toEqual([second.token]);
    for (const each of [a, b]) await each.close();
  });

  it('S1, S9, L5: a ZooKeeper that is killed and restarted keeps what it granted, and is never reported as held', async () => {
    const engine = openEngine(newStore());
    const pawl = open(engine);
    const lease = await pawl.acquire('x', { ttlMs: 60_000 });
    const heard: string[] = [];
    engine.subscribe('inbox', (message) => heard.push(message));
    await engine.read({ keys: [], ranges: [] });
    await server.kill();
    await expect(pawl.tryAcquire('y')).rejects.toMatchObject({
      code: expect.stringMatching(/PAWL_ENGINE_UNAVAILABLE|PAWL_OUTCOME_UNKNOWN/),
    });
    await server.start();
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
    await engine.commit([write({ wakes: [{ inbox: 'inbox', message: 'after the restart' }] })]);
    await expect.poll(() => heard, { timeout: 30_000 }).toEqual(['after the restart']);
    await pawl.close();
  }, 120_000);

  it('S3: a session is kept alive by another engine when the first is closed, and by nobody it expires', async () => {
    const connect = newStore();
    const [one, other] = [openEngine(connect), openEngine(connect)];
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
    const engine = openEngine(newStore());
    const short = { code: 'PAWL_TTL_TOO_SHORT', minTtlMs: MIN_TTL_MS };
    await expect(engine.openSession('short', MIN_TTL_MS - 1)).rejects.toMatchObject(short);
    await expect(engine.openSession('long', MAX_TTL_MS + 1)).rejects.toThrow(invalid);
    await expect(engine.openSession('longer', 2 ** 31)).rejects.toThrow(invalid);
    expect(await engine.keepAlive(['short', 'long', 'longer'])).toEqual(new Set());
  });

  it('more sessions than maxSessions are refused', async () => {
    const engine = openEngine(newStore(), { maxSessions: 2 });
    for (const id of ['a', 'b']) expect(await engine.openSession(id, 60_000)).toBe(true);
    const refused = { code: 'PAWL_ENGINE_UNAVAILABLE', outcome: 'definite' };
    await expect(engine.openSession('c', 60_000)).rejects.toMatchObject(refused);
    await engine.endSession('a');
    expect(await engine.openSession('c', 60_000)).toBe(true);
  });

  it('S2: a key that others deleted and made again, at the same data version, is another', async () => {
    const connect = newStore();
    const [one, other] = [openEngine(connect), openEngine(connect)];
    const version = await put(one, 'a', 'x');
    await other.commit([write({ deletes: ['a'] })]);
    await put(other, 'a', 'x');
    const guarded = write({ guards: [{ key: 'a', version }], puts: [{ key: 'a', value: 'y' }] });
    expect(await one.commit([guarded])).toEqual([{ kind: 'conflict', keys: ['a'] }]);
  });

  it('a guard that others moved on without touching the key is no conflict', async () => {
    const connect = newStore();
    const [one, other] = [openEngine(connect), openEngine(connect)];
    const version = await put(one, 'a', 'x');
    const keeper = openKeeper();
    for (let guard = 0; guard < 1024; guard += 1) {
      await keeper.operate(setOperation(`${pathOf(connect)}/guard/${guard}`, Buffer.alloc(0), ANY_VERSION));
    }
    const guarded = write({ guards: [{ key: 'a', version }], deletes: ['a'] });
    expect(await one.commit([guarded])).toMatchObject([{ kind: 'committed' }]);
    expect((await other.read({ keys: ['a'], ranges: [] })).entries.size).toBe(0);
  });

  it('L4: the first of 2,000 waiters are read without the names of all', async () => {
    const connect = newStore();
    const [engine, keeper] = [openEngine(connect), openKeeper()];
    const keys = Array.from({ length: 2000 }, (_, i) => `wait/x/${String(i + 50).padStart(16, '0')}`);
    for (let i = 0; i < keys.length; i += 500) {
      await engine.commit([write({ puts: keys.slice(i, i + 500).map((key) => ({ key, value: key })) })]);
    }
    const { ranges } = await engine.read({ keys: [], ranges: [{ prefix: 'wait/x/', limit: 100 }] });
    expect(ranges[0]?.map(({ key }) => key)).toEqual(keys.slice(0, 100));
    expect((await engine.list('wait/x/', 3000)).map(({ key }) => key)).toEqual(keys);
    const queue = `${pathOf(connect)}/keys/+wait/+x`;
    const parts = (await keeper.multiRead([childrenOperation(queue)])).results[0]?.children ?? [];
    expect(parts).toHaveLength(21);
    const { results } = await keeper.multiRead(parts.map((part) => childrenOperation(`${queue}/${part}`)));
    expect(Math.max(...results.map(({ children }) => children?.length ?? 0))).toBe(100);
  });

  it('folders that ZooKeeper removed while they were empty are made again', async () => {
    const connect = newStore();
    const [engine, keeper] = [openEngine(connect), openKeeper()];
    const key = 'one/two/three';
    await put(engine, key, '1');
    await engine.commit([write({ deletes: [key] })]);
    for (const folder of ['+one/+two', '+one']) {
      await keeper.operate(deleteOperation(`${pathOf(connect)}/keys/${folder}`));
    }
    await put(engine, key, '2');
    expect((await engine.read({ keys: [key], ranges: [] })).entries.get(key)?.value).toBe('2');
    expect(await engine.commit([write({ deletes: [key, 'not/there'] })])).toMatchObject([
      { kind: 'committed' },
    ]);
  });

  it('S1: what was written before the version was raised keeps its version', async () => {
    const connect = newStore();
    const [one, other] = [openEngine(connect), openEngine(connect)];
    const versions = new Map<string, bigint>();
    for (const [i, floor] of [1n, 2n ** 40n, 2n ** 50n].entries()) {
      const before = await one.raiseVersion(floor);
      expect(before).toBeGreaterThanOrEqual([...versions.values()].at(-1) ?? 0n);
      for (const [k, engine] of [other, one].entries())
        versions.set(`${i}/${k}`, await put(engine, `${i}/${k}`, 'x'));
      expect(versions.get(`${i}/0`)).toBeGreaterThan(floor);
    }
    const { entries } = await openEngine(connect).read({ keys: [...versions.keys()], ranges: [] });
    expect(new Map([...entries].map(([key, { version }]) => [key, version]))).toEqual(versions);
  });

  it('a write that no request can hold is refused, and those beside it happen', async () => {
    const engine = openEngine(newStore());
    const large = put(engine, 'large', 'x'.repeat(1_100_000));
    const small = put(engine, 'small', 'x');
    await expect(large).rejects.toThrow(invalid);
    expect(await small).toBeGreaterThan(0n);
    expect((await engine.read({ keys: ['large', 'small'], ranges: [] })).entries.size).toBe(1);
  });

  it('messages that nobody listens for are not kept, and a node that comes back hears what waited', async () => {
    const connect = newStore();
    const [one, other] = [openEngine(connect), openEngine(connect)];
    const wake = (message: string) => one.commit([write({ wakes: [{ inbox: 'a', message }] })]);
    await wake('to nobody');
    const heard: string[] = [];
    let stop = other.subscribe('a', (message) => heard.push(message));
    stop();
    stop = other.subscribe('a', (message) => heard.push(message));
    await other.read({ keys: [], ranges: [] });
    await wake('first');
    await wake('second');
    await expect.poll(() => heard, { timeout: 10_000 }).toEqual(['first', 'second']);
    stop();
    const inboxes = childrenOperation(`${pathOf(connect)}/inbox`);
    const left = async () => (await openKeeper().multiRead([inboxes])).results[0]?.children;
    await expect.poll(left, { timeout: 10_000 }).toEqual([]);
  });

  it('who has the same auth can use the store, and nobody else', async () => {
    const connect = newStore();
    const auth = { scheme: 'digest', credentials: 'pawl:secret' };
    const [one, other] = [openEngine(connect, { auth }), openEngine(connect, { auth })];
    await put(one, 'a', 'x');
    expect((await other.read({ keys: ['a'], ranges: [] })).entries.get('a')?.value).toBe('x');
    await one.openSession('session', 60_000);
    await other.endSession('session');
    const refused = { code: 'PAWL_ENGINE_UNAVAILABLE', outcome: 'definite' };
    await expect(openEngine(connect).read({ keys: ['a'], ranges: [] })).rejects.toMatchObject(refused);
    const unknown = { scheme: 'no-such-scheme', credentials: 'x' };
    await expect(openEngine(connect, { auth: unknown }).list('', 1)).rejects.toMatchObject(refused);
  });

  it('a store of a newer Pawl is refused, and so is one that makes no sense', async () => {
    const connect = newStore();
    await put(openEngine(connect), 'a', 'x');
    const keeper = openKeeper();
    const format = `${pathOf(connect)}/format`;
    expect((await keeper.multiRead([dataOperation(format)])).results[0]?.data?.toString()).toBe('1');
    for (const [found, code] of [
      ['2', 'PAWL_STORE_VERSION'],
      ['x', 'PAWL_STORE_CORRUPT'],
    ] as const) {
      await keeper.operate(setOperation(format, Buffer.from(found), ANY_VERSION));
      await expect(openEngine(connect).list('', 1)).rejects.toMatchObject({ code });
    }
  });

  it('says how the servers are run', async () => {
    const connect = newStore();
    expect(await openEngine(connect).check?.()).toEqual([
      { setting: '1 voting server', warning: expect.stringContaining('down') },
      { setting: `minSessionTimeout ${MIN_TTL_MS} ms`, warning: null },
      { setting: `maxSessionTimeout ${MAX_TTL_MS} ms`, warning: null },
    ]);
    const findings = await openEngine(connect, { minTtlMs: 100 }).check?.();
    expect(findings?.[1]?.warning).toContain('100');
  });

  it('a server that is not there is an engine that is unavailable, definitely', async () => {
    const engine = openEngine('127.0.0.1:1');
    const refused = { code: 'PAWL_ENGINE_UNAVAILABLE', outcome: 'definite' };
    await expect(engine.list('', 1)).rejects.toMatchObject(refused);
    await expect(engine.openSession('a', 60_000)).rejects.toMatchObject(refused);
    await engine.close();
    await expect(engine.list('', 1)).rejects.toMatchObject({ code: 'PAWL_CLOSED' });
  });
});

describe.skipIf(!have)('with three ZooKeeper servers', () => {
  it('S1, S2, S3: any one of them can be lost', async () => {
    const servers = await ensembleOf(3);
    try {
      await Promise.all(servers.map((each) => each.start()));
      const address = (from: number) =>
        [0, 1, 2].map((i) => `127.0.0.1:${servers[(from + i) % 3]?.port}`).join();
      const engines = [0, 1, 2].map((from) => openEngine(address(from)));
      const clients = engines.map((engine) => open(engine));
      expect(await engines[0]?.check?.()).toContainEqual({ setting: '3 voting servers', warning: null });
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

describe('the options of the ZooKeeper engine', () => {
  it.each([
    ...[
      '',
      ':2181',
      'host:0',
      'host:99999',
      'a,,b',
      'host:1/a//b',
      'host/a/',
      'host/../a',
      'host/a b',
      '[::1',
    ],
    'host/zookeeper',
    7,
  ])('no address: %j', (connect) => {
    expect(() => zookeeperEngine({ connect: connect as string })).toThrow(invalid);
  });

  it('refuses other senseless values', () => {
    const connect = 'a,[::1]:2182,b.example:2183/some/path';
    for (const options of [
      { auth: { scheme: 'digest' } },
      { acl: [] },
      { acl: [{ permissions: 32, scheme: 'world', id: 'anyone' }] },
      { tls: true },
      { minTtlMs: 0 },
      { maxSessions: 1.5 },
    ]) {
      expect(() => zookeeperEngine({ connect, ...options } as ZooKeeperEngineOptions)).toThrow(invalid);
    }
    const { root } = checkOptions({ connect });
    expect(root).toBe('/some/path');
    expect(checkOptions({ connect: 'a/' }).root).toBe('/pawl');
  });
});
