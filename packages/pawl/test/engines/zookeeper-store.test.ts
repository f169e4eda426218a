import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, connect as connectTo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConditionalWrite, Engine } from '../../src/engines/engine.ts';
import { type ZooKeeperEngineOptions, zookeeperEngine } from '../../src/engines/zookeeper/index.ts';
import { checkOptions } from '../../src/engines/zookeeper/options.ts';
import {
  ANY_VERSION,
  childrenOperation,
  dataOperation,
  deleteOperation,
  setOperation,
} from '../../src/engines/zookeeper/protocol.ts';
import { works } from './server-tools.ts';
import { haveZooKeeper, MAX_TTL_MS, MIN_TTL_MS, pathOf, ZooKeeperStores } from './zookeeper-server.ts';

const have = haveZooKeeper();
const stores = new ZooKeeperStores();

function write(parts: Partial<ConditionalWrite>): ConditionalWrite {
  return { guards: [], alive: [], puts: [], deletes: [], wakes: [], ...parts };
}

async function put(engine: Engine, key: string, value: string): Promise<bigint> {
  const [result] = await engine.commit([write({ puts: [{ key, value }] })]);
  return result?.kind === 'committed' ? result.version : 0n;
}

const invalid = expect.objectContaining({ code: 'PAWL_INVALID_ARGUMENT' });

describe.skipIf(!have)('the store in ZooKeeper', () => {
  beforeAll(() => stores.server.start(), 90_000);
  afterAll(() => stores.stop(), 60_000);

  it('S2: a key that others deleted and made again, at the same data version, is another', async () => {
    const connect = stores.newStore();
    const [one, other] = [stores.openEngine(connect), stores.openEngine(connect)];
    const version = await put(one, 'a', 'x');
    await other.commit([write({ deletes: ['a'] })]);
    await put(other, 'a', 'x');
    const guarded = write({ guards: [{ key: 'a', version }], puts: [{ key: 'a', value: 'y' }] });
    expect(await one.commit([guarded])).toEqual([{ kind: 'conflict', keys: ['a'] }]);
  });

  it('a guard that others moved on without touching the key is no conflict', async () => {
    const connect = stores.newStore();
    const [one, other] = [stores.openEngine(connect), stores.openEngine(connect)];
    const version = await put(one, 'a', 'x');
    const keeper = stores.openKeeper();
    for (let guard = 0; guard < 1024; guard += 1) {
      await keeper.operate(setOperation(`${pathOf(connect)}/guard/${guard}`, Buffer.alloc(0), ANY_VERSION));
    }
    const guarded = write({ guards: [{ key: 'a', version }], deletes: ['a'] });
    expect(await one.commit([guarded])).toMatchObject([{ kind: 'committed' }]);
    expect((await other.read({ keys: ['a'], ranges: [] })).entries.size).toBe(0);
  });

  it('L4: the first of 2,000 waiters are read without the names of all', async () => {
    const connect = stores.newStore();
    const [engine, keeper] = [stores.openEngine(connect), stores.openKeeper()];
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

  it('L2: keys of every form come in the order of their bytes', async () => {
    const engine = stores.openEngine(stores.newStore());
    const digits = '00000000000012';
    const segments = [
      '',
      '!',
      'a',
      'a!',
      'a0',
      'é',
      '\uE000',
      '😀',
      '.',
      '=',
      digits,
      `${digits}!`,
      `${digits}:`,
    ];
    for (const more of ['3', '34', '349', '34/', '3a', '3!']) segments.push(digits + more);
    const keys = segments.flatMap((a) => [a, ...segments.map((b) => `${a}/${b}`)]);
    const inOrder = [...new Set(keys)].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    await engine.commit([write({ puts: inOrder.toReversed().map((key) => ({ key, value: key })) })]);
    const paged: string[] = [];
    for (let size = 7; size === 7; ) {
      const page = await engine.list('', 7, paged.at(-1));
      paged.push(...page.map(({ key }) => key));
      size = page.length;
    }
    expect(paged).toEqual(inOrder);
    for (const prefix of ['a', `${digits}3`, `${digits}34/`, digits.slice(0, 5), `a/${digits}3`, 'é/']) {
      const wanted = inOrder.filter((key) => key.startsWith(prefix));
      const { ranges } = await engine.read({ keys: [], ranges: [{ prefix, limit: 3 }] });
      expect(ranges[0]?.map(({ key }) => key)).toEqual(wanted.slice(0, 3));
      expect((await engine.list(prefix, 1000)).map(({ key }) => key)).toEqual(wanted);
    }
  });

  it('folders that ZooKeeper removed while they were empty are made again', async () => {
    const connect = stores.newStore();
    const [engine, keeper] = [stores.openEngine(connect), stores.openKeeper()];
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
    const connect = stores.newStore();
    const [one, other] = [stores.openEngine(connect), stores.openEngine(connect)];
    const versions = new Map<string, bigint>();
    for (const [i, floor] of [1n, 2n ** 40n, 2n ** 50n].entries()) {
      const before = await one.raiseVersion(floor);
      expect(before).toBeGreaterThanOrEqual([...versions.values()].at(-1) ?? 0n);
      for (const [k, engine] of [other, one].entries())
        versions.set(`${i}/${k}`, await put(engine, `${i}/${k}`, 'x'));
      expect(versions.get(`${i}/0`)).toBeGreaterThan(floor);
    }
    const { entries } = await stores.openEngine(connect).read({ keys: [...versions.keys()], ranges: [] });
    expect(new Map([...entries].map(([key, { version }]) => [key, version]))).toEqual(versions);
  });

  it('a write that no request can hold is refused, and those beside it happen', async () => {
    const engine = stores.openEngine(stores.newStore());
    const large = put(engine, 'large', 'x'.repeat(1_100_000));
    const small = put(engine, 'small', 'x');
    await expect(large).rejects.toThrow(invalid);
    expect(await small).toBeGreaterThan(0n);
    expect((await engine.read({ keys: ['large', 'small'], ranges: [] })).entries.size).toBe(1);
  });

  it('messages that nobody listens for are not kept, and a node that comes back hears what waited', async () => {
    const connect = stores.newStore();
    const [one, other] = [stores.openEngine(connect), stores.openEngine(connect)];
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
    const left = async () => (await stores.openKeeper().multiRead([inboxes])).results[0]?.children;
    await expect.poll(left, { timeout: 10_000 }).toEqual([]);
  });

  it('who has the same auth can use the store, and nobody else', async () => {
    const connect = stores.newStore();
    const auth = { scheme: 'digest', credentials: 'pawl:secret' };
    const [one, other] = [stores.openEngine(connect, { auth }), stores.openEngine(connect, { auth })];
    await put(one, 'a', 'x');
    expect((await other.read({ keys: ['a'], ranges: [] })).entries.get('a')?.value).toBe('x');
    await one.openSession('session', 60_000);
    await other.endSession('session');
    const refused = { code: 'PAWL_ENGINE_UNAVAILABLE', outcome: 'definite' };
    await expect(stores.openEngine(connect).read({ keys: ['a'], ranges: [] })).rejects.toMatchObject(refused);
    const unknown = { scheme: 'no-such-scheme', credentials: 'x' };
    await expect(stores.openEngine(connect, { auth: unknown }).list('', 1)).rejects.toMatchObject(refused);
  });

  it.skipIf(!works('openssl', ['version']))('TLS', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-zookeeper-tls-'));
    const [keyFile, certFile] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
    const kind = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=localhost', '-days', '2'];
    execFileSync('openssl', ['req', ...kind, '-keyout', keyFile, '-out', certFile], { stdio: 'ignore' });
    const [key, cert] = [readFileSync(keyFile), readFileSync(certFile)];
    rmSync(folder, { recursive: true });
    // Takes the TLS off in front of the server, which has none.
    const front = createServer({ key, cert }, (socket) => {
      const behind = connectTo({ port: stores.server.port, host: '127.0.0.1' });
      socket.pipe(behind).pipe(socket);
      for (const [one, other] of [[socket, behind] as const, [behind, socket] as const]) {
        one.on('error', () => {});
        one.on('close', () => other.destroy());
      }
    });
    front.on('tlsClientError', () => {});
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    const address = stores.newStore((front.address() as AddressInfo).port).replace('127.0.0.1', 'localhost');
    const engine = stores.openEngine(address, { tls: { ca: cert } });
    const version = await put(engine, 'a', 'x'.repeat(100_000));
    expect((await engine.read({ keys: ['a'], ranges: [] })).entries.get('a')?.version).toBe(version);
    expect(await engine.openSession('session', 60_000)).toBe(true);
    await engine.close();
    const refused = { code: 'PAWL_ENGINE_UNAVAILABLE', outcome: 'definite' };
    await expect(stores.openEngine(address, { tls: {} }).list('', 1)).rejects.toMatchObject(refused);
    await new Promise((resolve) => front.close(resolve));
  });

  it('a store of a newer Pawl is refused, and so is one that makes no sense', async () => {
    const connect = stores.newStore();
    await put(stores.openEngine(connect), 'a', 'x');
    const keeper = stores.openKeeper();
    const format = `${pathOf(connect)}/format`;
    expect((await keeper.multiRead([dataOperation(format)])).results[0]?.data?.toString()).toBe('1');
    for (const [found, code] of [
      ['2', 'PAWL_STORE_VERSION'],
      ['x', 'PAWL_STORE_CORRUPT'],
    ] as const) {
      await keeper.operate(setOperation(format, Buffer.from(found), ANY_VERSION));
      await expect(stores.openEngine(connect).list('', 1)).rejects.toMatchObject({ code });
    }
  });

  it('says how the servers are run', async () => {
    const connect = stores.newStore();
    expect(await stores.openEngine(connect).check?.()).toEqual([
      { setting: 'servers 1', warning: expect.stringContaining('no server') },
      { setting: `minSessionTimeout ${MIN_TTL_MS}`, warning: null },
      { setting: `maxSessionTimeout ${MAX_TTL_MS}`, warning: null },
    ]);
    const findings = await stores.openEngine(connect, { minTtlMs: 100 }).check?.();
    expect(findings?.[1]?.warning).toContain('100');
  });

  it('a server that is not there is an engine that is unavailable, definitely', async () => {
    const engine = stores.openEngine('127.0.0.1:1');
    const refused = { code: 'PAWL_ENGINE_UNAVAILABLE', outcome: 'definite' };
    await expect(engine.list('', 1)).rejects.toMatchObject(refused);
    await expect(engine.openSession('a', 60_000)).rejects.toMatchObject(refused);
    await engine.close();
    await expect(engine.list('', 1)).rejects.toMatchObject({ code: 'PAWL_CLOSED' });
  });
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
