import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from '../../src/client/open.ts';
import { type EtcdEngineOptions, etcdEngine } from '../../src/engines/etcd/index.ts';
import { LockNode } from '../../src/node/lock-node.ts';
import { engineConformance } from '../../src/testing/index.ts';
import { TcpProxy } from '../faults/tcp-proxy.ts';
import { EtcdServer, gateway, haveEtcd } from './etcd-server.ts';
import { runDocumented } from './server-tools.ts';
import { seeEachOther } from './two-clients.ts';
import { oneReleaseWakesOne } from './wakes.ts';

const have = haveEtcd();
const UNAVAILABLE = { code: expect.stringMatching(/PAWL_ENGINE_UNAVAILABLE|PAWL_OUTCOME_UNKNOWN/) };
let stores = 0;

function newPrefix(): string {
  stores += 1;
  return `store-${stores}`;
}

describe.skipIf(!have)('one etcd', () => {
  const server = new EtcdServer();
  beforeAll(() => server.start(), 60_000);
  afterAll(() => server.stop());
  const engineOn = (prefix: string) => etcdEngine({ endpoints: server.endpoints, prefix });

  conformance(server);

  it('S1, S2, L2: two clients see each other’s locks, queues and tokens', async () => {
    const prefix = newPrefix();
    await seeEachOther(await engineOn(prefix), await engineOn(prefix));
  });

  it('L2, L3: 300 clients that want one lock at once get it one after the other', async () => {
    const engine = await engineOn(newPrefix());
    const pawl = open(engine);
    const tokens: bigint[] = [];
    let inside = 0;
    await Promise.all(
      Array.from({ length: 300 }, () =>
        pawl.withLock('x', { waitMs: 60_000 }, async (lease) => {
          inside += 1;
          expect(inside).toBe(1);
          tokens.push(lease.token);
          await undefined;
          inside -= 1;
        }),
      ),
    );
    expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)));
    expect(new Set(tokens).size).toBe(300);
    await pawl.close();
    await engine.close();
  }, 90_000);

  it('L3: with 1,000 waiters on four nodes one release wakes one of them', async () => {
    const prefix = newPrefix();
    await oneReleaseWakesOne(() => engineOn(prefix));
  }, 90_000);

  it('C6: whoever stops listening before the watch is open is no crash', async () => {
    const errors: unknown[] = [];
    const onError = (error: unknown) => errors.push(error);
    process.on('uncaughtException', onError);
    for (let i = 0; i < 30; i += 1) {
      const engine = await engineOn(newPrefix());
      const stop = engine.subscribe(`inbox-${i}`, () => {});
      for (let turns = 0; turns < i % 10; turns += 1) await new Promise((resolve) => setImmediate(resolve));
      stop();
      await new Promise((resolve) => setTimeout(resolve, 10));
      expect((await engine.read({ keys: ['x'], ranges: [] })).entries.size).toBe(0);
      await engine.close();
    }
    process.off('uncaughtException', onError);
    expect(errors).toEqual([]);
  });

  it('S3: a session is kept alive through the next member where the one so far cannot be reached', async () => {
    const proxy = new TcpProxy(server.port(0));
    const endpoints = [`http://127.0.0.1:${await proxy.listen()}`, ...server.endpoints];
    const engine = await etcdEngine({ endpoints, prefix: newPrefix() });
    await engine.openSession('s', 60_000);
    proxy.set('cut');
    expect([...(await engine.keepAlive(['s']))]).toEqual(['s']);
    await engine.close();
    proxy.close();
  });

  it('64 locks at once are one write', async () => {
    const engine = await engineOn(newPrefix());
    const pawl = open(engine);
    const names = Array.from({ length: 64 }, (_, i) => `many-${i}`);
    const leases = await pawl.acquireAll(names);
    expect((await pawl.inspect('many-63')).holders).toHaveLength(1);
    await leases.release();
    expect((await pawl.inspect('many-63')).holders).toHaveLength(0);
    await pawl.close();
    await engine.close();
  });

  it('L1: a holder of 64 locks is buried, and those who wait for each of them are let in', async () => {
    const engine = await engineOn(newPrefix());
    const node = new LockNode(engine);
    const [holder, ...waiters] = await Promise.all(
      Array.from({ length: 65 }, () => node.openSession(60_000)),
    );
    const locks = waiters.map((_, i) => ({ name: `many-${i}`, mode: 'exclusive' as const, permits: null }));
    const settings = { wait: true, owner: {}, lockDelayMs: 0, barging: false };
    const acquire = (session = '', asked = locks) => node.acquire({ session, request: 'r' }, asked, settings);
    expect((await acquire(holder)).kind).toBe('granted');
    const heard: Promise<void>[] = [];
    for (const session of waiters)
      heard.push(new Promise((resolve) => void node.listen(session, () => resolve())));
    await Promise.all(waiters.map((session, i) => acquire(session, locks.slice(i, i + 1))));
    await node.closeSession(holder ?? '');
    await Promise.all(heard);
    await node.close();
    await engine.close();
  });

  it('S1: tokens stay what they were for who holds while the version is raised, and rise from then on', async () => {
    const prefix = newPrefix();
    const [one, other] = [await engineOn(prefix), await engineOn(prefix)];
    const [a, b] = [open(one), open(other)];
    const before = await a.acquire('x');
    await one.raiseVersion(5_000_000_000n);
    const after = await b.acquire('y');
    expect(after.token).toBeGreaterThan(5_000_000_000n);
    expect((await b.inspect('x')).holders.map((holder) => holder.token)).toEqual([before.token]);
    await before.release();
    await other.raiseVersion(6_000_000_000n);
    expect((await a.inspect('y')).holders.map((holder) => holder.token)).toEqual([after.token]);
    expect((await a.acquire('x')).token).toBeGreaterThan(6_000_000_000n);
    for (const each of [a, b, one, other]) await each.close();
  });

  it('L3: a commit with a message happens although the lease of messages is gone before its time', async () => {
    const prefix = newPrefix();
    const [engine, other] = [await engineOn(prefix), await engineOn(prefix)];
    const write = { guards: [], alive: [], puts: [{ key: 'x', value: '1' }], deletes: [] };
    const wake = (message: string) => ({ ...write, wakes: [{ inbox: 'one', message }] });
    await engine.commit([wake('before')]);
    const key = base64(`${prefix}/inbox/one/0`);
    const { kvs } = JSON.parse(await gateway(server, 'kv/range', { key }));
    await gateway(server, 'lease/revoke', { ID: kvs[0].lease });
    const heard: string[] = [];
    other.subscribe('one', (message) => heard.push(message));
    await other.read({ keys: [], ranges: [] });
    expect(await engine.commit([wake('after')])).toMatchObject([{ kind: 'committed' }]);
    await expect.poll(() => heard).toEqual(['after']);
    for (const each of [engine, other]) await each.close();
  });

  it('a compacted history costs a watcher nothing', async () => {
    const prefix = newPrefix();
    const engines = [await engineOn(prefix), await engineOn(prefix)];
    const [pawl, other] = engines.map((engine) => open(engine));
    if (pawl === undefined || other === undefined) throw new Error('There are no clients.');
    for (let round = 0; round < 3; round += 1) {
      const lease = await pawl.acquire('x');
      const next = other.acquire('x', { waitMs: 10_000 });
      await gateway(server, 'kv/compaction', { revision: String(lease.token), physical: true });
      await lease.release();
      await (await next).release();
    }
    for (const each of [pawl, other, ...engines]) await each.close();
  });

  it('a layout of a newer Pawl, and one that is none, are refused', async () => {
    const [newer, none] = [newPrefix(), newPrefix()];
    await gateway(server, 'kv/put', { key: base64(`${newer}/format`), value: base64('2') });
    await gateway(server, 'kv/put', { key: base64(`${none}/format`), value: base64('what?') });
    await expect(engineOn(newer)).rejects.toMatchObject({ code: 'PAWL_STORE_VERSION' });
    await expect(engineOn(none)).rejects.toMatchObject({ code: 'PAWL_STORE_CORRUPT' });
  });

  it('L5: an etcd that is killed is never reported as held; S1, S9: it keeps what it granted', async () => {
    const engine = await engineOn(newPrefix());
    const pawl = open(engine);
    const lease = await pawl.acquire('x', { ttlMs: 60_000 });
    await server.kill(0);
    await expect(pawl.tryAcquire('y')).rejects.toMatchObject(UNAVAILABLE);
    await expect(etcdEngine({ endpoints: server.endpoints })).rejects.toMatchObject({
      ...UNAVAILABLE,
      outcome: 'definite',
    });
    await server.startMember(0);
    await expect
      .poll(() => pawl.inspect('x').catch(() => undefined), { timeout: 15_000 })
      .toMatchObject({ holders: [{ token: lease.token }] });
    await lease.release();
    expect((await pawl.acquire('x')).token).toBeGreaterThan(lease.token);
    await pawl.close();
    await engine.close();
  }, 60_000);

  it('the documented program runs', () => {
    expect(runDocumented('etcd', { ETCD_ENDPOINTS: server.endpoints.join(',') })).toMatch(/^token \d+\n$/);
  });

  it('says what is wrong with one member', async () => {
    const engine = await engineOn(newPrefix());
    const findings = (await engine.check?.()) ?? [];
    expect(findings).toContainEqual({ setting: 'members 1', warning: 'it survives the loss of no member' });
    expect(findings[0]).toMatchObject({
      setting: expect.stringMatching(/^version 3\.\d+\.\d+$/),
      warning: null,
    });
    await engine.close();
  });

  it('refuses options that make no sense', async () => {
    const bad: Partial<EtcdEngineOptions>[] = [
      { endpoints: [] },
      { endpoints: ['nowhere'] },
      { endpoints: ['ftp://a:1'] },
      { endpoints: ['http://a:1'], tls: {} },
      { user: 'only' },
      { tls: { cert: 'only' }, endpoints: ['https://a:1'] },
      { prefix: '' },
      { prefix: 'a b' },
    ];
    for (const options of bad) {
      await expect(etcdEngine({ endpoints: server.endpoints, ...options })).rejects.toMatchObject({
        code: 'PAWL_INVALID_ARGUMENT',
      });
    }
  });
});

describe.skipIf(!have)('three members of etcd', () => {
  const server = new EtcdServer(3);
  beforeAll(() => server.start(), 60_000);
  afterAll(() => server.stop());

  conformance(server);

  it('S1, S2, L5: one member lost changes nothing; two lost fail closed; back again all goes on', async () => {
    const engine = await etcdEngine({ endpoints: server.endpoints, prefix: newPrefix() });
    const pawl = open(engine);
    const lease = await pawl.acquire('x', { ttlMs: 120_000 });
    await server.kill(0);
    const other = await settled(() => pawl.acquire('y', { ttlMs: 120_000 }));
    expect(other.token).toBeGreaterThan(lease.token);
    await server.kill(1);
    await expect(pawl.tryAcquire('z')).rejects.toMatchObject(UNAVAILABLE);
    await Promise.all([server.startMember(0), server.startMember(1)]);
    const next = await settled(() => pawl.acquire('z'));
    expect(next.token).toBeGreaterThan(other.token);
    expect((await pawl.inspect('x')).holders.map((holder) => holder.token)).toEqual([lease.token]);
    expect(await engine.check?.()).toContainEqual({ setting: 'members 3', warning: null });
    await lease.release();
    await pawl.close();
    await engine.close();
  }, 120_000);
});

function conformance(server: EtcdServer): void {
  engineConformance({
    engine: 'etcd',
    describe,
    it: (name, body) => it.concurrent(name, body, 60_000),
    ttlMs: 2000,
    start: async () => {
      const prefix = newPrefix();
      return {
        openEngine: () => etcdEngine({ endpoints: server.endpoints, prefix }),
        passTime: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
        stop: async () => {},
      };
    },
  });
}

/** Tries again until the engine can be reached. */
async function settled<T>(attempt: () => Promise<T>): Promise<T> {
  for (let left = 20; ; left -= 1) {
    try {
      return await attempt();
    } catch (error) {
      if (left === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }
}

/** What an operator would do with etcdctl. */
function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
