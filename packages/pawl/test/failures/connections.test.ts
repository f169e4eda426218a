import { Agent, request } from 'node:http';
import { createServer, type Server } from 'node:net';
import { Redis } from 'ioredis';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { open } from '../../src/client/open.ts';
import { connect } from '../../src/client/remote/connect.ts';
import { settle } from '../../src/client/settle.ts';
import type { Engine } from '../../src/engines/engine.ts';
import { etcdEngine } from '../../src/engines/etcd/index.ts';
import { memoryEngine } from '../../src/engines/memory/index.ts';
import { postgresEngine } from '../../src/engines/postgres/index.ts';
import { redisEngine } from '../../src/engines/redis/index.ts';
import { zookeeperEngine } from '../../src/engines/zookeeper/index.ts';
import { EngineUnavailableError } from '../../src/errors.ts';
import { serve } from '../../src/server/index.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { freePort } from '../engines/server-tools.ts';
import { Network } from '../server/network.ts';
import { ask, client, running } from '../server/setup.ts';

type Body = Record<string, unknown>;

/** A request over a connection of `agent`'s, or over one of its own. */
function over(
  agent: Agent | false,
  url: string,
  path: string,
  body: Body,
): Promise<{ status: number; body: Body; port: number }> {
  return new Promise((resolve, reject) => {
    const text = JSON.stringify(body);
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    const sending = request(url + path, { method: 'POST', agent, headers }, (response) => {
      const port = response.socket.localPort ?? 0;
      let said = '';
      response.on('data', (chunk) => (said += chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: JSON.parse(said), port }));
    });
    sending.on('error', reject);
    sending.end(text);
  });
}

/** A server of some other kind: it answers everything with a line that means nothing. */
async function stranger(): Promise<number> {
  const server: Server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', () => socket.end('220 mail.example ready\r\n'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

describe('connections by HTTP', () => {
  it('S4: a lock belongs to its session: it is renewed and released over other connections than it was acquired on', async () => {
    const { server } = await running();
    const pool = new Agent({ keepAlive: true, maxSockets: 5 });
    onTestFinished(() => pool.destroy());
    const { session } = (await over(pool, server.url, '/v1/sessions', { ttlMs: 10_000 })).body;
    const granted = await over(false, server.url, '/v1/locks/x/acquire', { session, request: 'r' });
    const alive = await over(pool, server.url, `/v1/sessions/${session}/keepalive`, {});
    expect([granted.status, alive.status]).toEqual([200, 200]);
    expect(alive.port).not.toBe(granted.port);
    const { token } = granted.body;
    const released = await over(false, server.url, '/v1/locks/x/release', { session, request: 'r', token });
    expect(released.body).toEqual({ released: true });
    const again = await over(false, server.url, '/v1/locks/x/release', { session, request: 'none', token });
    expect(again.body).not.toEqual({ released: true });
  });

  it('S4: whoever gets a connection that another used before inherits nothing, and can release nothing of the other’s', async () => {
    const { server } = await running();
    const pool = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => pool.destroy());
    const ports = new Set<number>();
    const post = async (path: string, body: Body) => {
      const answer = await over(pool, server.url, path, body);
      ports.add(answer.port);
      return answer.body;
    };
    const { session: first } = await post('/v1/sessions', { ttlMs: 10_000 });
    const { token } = await post('/v1/locks/x/acquire', { session: first, request: 'r' });
    const { session: second } = await post('/v1/sessions', { ttlMs: 10_000 });
    expect(await post('/v1/locks/x/acquire', { session: second, request: 'r' })).toMatchObject({
      code: 'PAWL_HELD',
    });
    expect(await post('/v1/locks/x/release', { session: second, request: 'r', token })).not.toMatchObject({
      released: true,
    });
    const { body } = await ask(server.url, 'GET', '/v1/locks/x');
    expect(body.holders).toMatchObject([{ token }]);
    await post('/v1/locks/y/acquire', { session: second, request: 'q' });
    expect(ports.size).toBe(1);
  });
});

describe('who is not what was expected', () => {
  it.each(['a server', 'redis', 'postgres', 'etcd', 'zookeeper'])(
    'L5: looking for %s, a port of another protocol and a closed one are trouble of the connection, and no lock that is held',
    async (what) => {
      for (const port of [await stranger(), await freePort()]) {
        const error = await look(what, port).then(
          () => undefined,
          (reason) => reason,
        );
        expect(error).toMatchObject({ code: 'PAWL_ENGINE_UNAVAILABLE' });
      }
    },
    60_000,
  );

  it('S2: a second server on the same address refuses to start; on the same store the locks are the same', async () => {
    const { server, engine } = await running();
    const second = memoryEngine();
    await expect(serve({ engine: second, port: server.port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await second.close();
    const beside = await running({ engine });
    const [a, b] = [await client(server.url), await client(beside.server.url)];
    const held = await a.acquire('x');
    expect(await b.tryAcquire('x')).toBeNull();
    await held.release();
  });

  it('L3: 300 clients whose server comes back do not come back at once, and one release then wakes one', async () => {
    const network = new Network();
    network.server('a');
    const holder = network.client('a');
    const held = await network.settle(holder.acquire('x', { ttlMs: 60_000 }));
    const waits = Array.from({ length: 300 }, () => network.client('a').acquire('x', { ttlMs: 60_000 }));
    let granted = 0;
    for (const wait of waits) wait.then(() => (granted += 1)).catch(() => {});
    await network.time.advance(100);
    network.down.add('a');
    for (const { wire } of network.wires.slice()) wire.drop();
    await network.time.advance(500);
    network.down.delete('a');
    const perMs: number[] = [];
    for (let ms = 0; ms < 3000; ms += 50) {
      const before = network.wires.length;
      await network.time.advance(50);
      perMs.push(network.wires.length - before);
    }
    const connected = perMs.reduce((sum, each) => sum + each, 0);
    expect(connected).toBe(301);
    expect(Math.max(...perMs)).toBeLessThan(150);
    expect((await network.settle(holder.inspect('x'))).waiting).toBe(300);
    await network.settle(held.release());
    await network.time.advance(500);
    expect(granted).toBe(1);
  }, 60_000);

  it('C5: a hundred requests that one outage hit at once are repeated at different moments', async () => {
    const clock = new SimulatedClock();
    let away = true;
    const cameBack: number[] = [];
    const attempt = async () => {
      if (away) throw new EngineUnavailableError('away', 'indefinite');
      cameBack.push(clock.monotonicMs());
    };
    const all = Promise.all(Array.from({ length: 100 }, () => settle(attempt, { clock, goOn: () => true })));
    await clock.advance(3000);
    away = false;
    await clock.advance(3000);
    await all;
    const most = cameBack.map((from) => cameBack.filter((at) => at >= from && at < from + 50).length);
    expect(cameBack).toHaveLength(100);
    expect(Math.max(...most)).toBeLessThan(50);
  });
});

async function look(what: string, port: number): Promise<unknown> {
  if (what === 'a server') return connect(`http://127.0.0.1:${port}`);
  if (what === 'etcd') return tryOn(await etcdEngine({ endpoints: [`127.0.0.1:${port}`] }));
  if (what === 'zookeeper') return tryOn(zookeeperEngine({ connect: `127.0.0.1:${port}` }));
  if (what === 'redis') {
    const redis = new Redis({ host: '127.0.0.1', port, maxRetriesPerRequest: 1, retryStrategy: () => 50 });
    redis.on('error', () => {});
    onTestFinished(() => redis.disconnect());
    return tryOn(redisEngine({ client: redis }));
  }
  const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'x', database: 'x', max: 2 });
  pool.on('error', () => {});
  onTestFinished(() => pool.end());
  return tryOn(await postgresEngine({ pool }));
}

async function tryOn(engine: Engine): Promise<unknown> {
  const pawl = open(engine);
  try {
    return await pawl.tryAcquire('x');
  } finally {
    await pawl.close().catch(() => {});
    await engine.close();
  }
}
