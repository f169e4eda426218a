import { Pool, type PoolConfig } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from '../../src/client/open.ts';
import { type PostgresPool, postgresEngine } from '../../src/engines/postgres/index.ts';
import { engineConformance, SimulatedTime } from '../../src/testing/index.ts';
import { PostgresServer, postgresPrograms } from './postgres-server.ts';
import { runDocumented } from './server-tools.ts';
import { seeEachOther } from './two-clients.ts';
import { oneReleaseWakesOne } from './wakes.ts';

const bin = postgresPrograms();
let server: PostgresServer;
const pools: Pool[] = [];
let stores = 0;

function newSchema(): string {
  stores += 1;
  return `store_${stores}`;
}

function connect(settings: PoolConfig = {}): Pool {
  const pool = new Pool({
    host: '127.0.0.1',
    port: server.port,
    user: 'postgres',
    database: 'postgres',
    max: 8,
    ...settings,
  });
  pool.on('error', () => {});
  pools.push(pool);
  return pool;
}

describe.skipIf(bin === undefined)('with a Postgres server', () => {
  beforeAll(async () => {
    server = new PostgresServer(bin ?? '');
    await server.start();
  }, 60_000);
  afterAll(async () => {
    await server.stop();
    for (const pool of pools) pool.end().catch(() => {});
  });

  engineConformance({
    engine: 'postgres',
    describe,
    it: (name, body) => it.concurrent(name, body, 60_000),
    ttlMs: 1500,
    start: async () => {
      const [pool, schema] = [connect(), newSchema()];
      return {
        openEngine: () => postgresEngine({ pool, schema }),
        passTime: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
        stop: async () => {
          await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
          pools.splice(pools.indexOf(pool), 1);
          await pool.end();
        },
      };
    },
  });

  it('S1, S2, L2: two clients see each other’s locks, queues and tokens', async () => {
    const schema = newSchema();
    const engine = () => postgresEngine({ pool: connect(), schema });
    await seeEachOther(await engine(), await engine());
  });

  it('L3: with 1,000 waiters on four nodes one release wakes one of them', async () => {
    const schema = newSchema();
    await oneReleaseWakesOne(() => postgresEngine({ pool: connect(), schema }));
  }, 90_000);

  it('L3: a waiter is let in although the connection that listens was terminated', async () => {
    const schema = newSchema();
    const engines = [
      await postgresEngine({ pool: connect(), schema }),
      await postgresEngine({ pool: connect(), schema }),
    ];
    const [pawl, other] = engines.map((engine) => open(engine));
    if (pawl === undefined || other === undefined) throw new Error('There are no clients.');
    const held = await pawl.acquire('x', { ttlMs: 60_000 });
    const waiting = other.acquire('x', { ttlMs: 60_000, waitMs: 15_000 });
    for await (const state of pawl.watch('x', { everyMs: 10 })) if (state.waiting === 1) break;
    await connect().query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = $1',
      ['client backend'],
    );
    await held.release();
    expect((await waiting).token).toBeGreaterThan(held.token);
    for (const each of [pawl, other, ...engines]) await each.close();
  });

  it('S1, S9, L5: a Postgres that crashes and comes back keeps every grant, and is never reported as held', async () => {
    const engine = await postgresEngine({ pool: connect(), schema: newSchema() });
    const pawl = open(engine);
    const lease = await pawl.acquire('x', { ttlMs: 60_000 });
    await server.kill();
    await expect(pawl.tryAcquire('y')).rejects.toMatchObject({
      code: expect.stringMatching(/PAWL_ENGINE_UNAVAILABLE|PAWL_OUTCOME_UNKNOWN/),
    });
    await server.start();
    await expect
      .poll(() => pawl.inspect('x').catch(() => undefined), { timeout: 15_000 })
      .toMatchObject({ holders: [{ token: lease.token }] });
    await lease.release();
    expect((await pawl.acquire('x')).token).toBeGreaterThan(lease.token);
    await pawl.close();
    await engine.close();
  }, 60_000);

  it('S2, S3: connections that would not see what others commit are refused, at the start and later', async () => {
    const [pool, schema] = [connect(), newSchema()];
    let current = pool;
    const changing: PostgresPool = {
      query: (text, values) => current.query(text, values),
      connect: () => current.connect(),
    };
    const engine = await postgresEngine({ pool: changing, schema });
    for (const level of ['repeatable read', 'serializable']) {
      const refusal = { code: 'PAWL_STORE_UNUSABLE', message: expect.stringContaining('read committed') };
      current = connect({ options: `-c default_transaction_isolation=${level.replace(' ', '\\ ')}` });
      await expect(postgresEngine({ pool: current, schema })).rejects.toMatchObject(refusal);
      const put = { guards: [], alive: [], puts: [{ key: 'x', value: '1' }], deletes: [], wakes: [] };
      await expect(engine.commit([put])).rejects.toMatchObject(refusal);
    }
    current = pool;
    expect((await engine.read({ keys: ['x'], ranges: [] })).entries.size).toBe(0);
    await engine.close();
  });

  it('L5: where no connection to listen on is to be had again, calls fail and it can be closed', async () => {
    const pool = connect({ max: 2, application_name: 'crowded' });
    const time = new SimulatedTime();
    const engine = await postgresEngine({ pool, schema: newSchema(), clock: time.clock() });
    engine.subscribe('inbox', () => {});
    await engine.read({ keys: [], ranges: [] });
    const busy = [await pool.connect()];
    await connect().query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'crowded' AND query LIKE 'LISTEN%'",
    );
    await expect.poll(() => pool.totalCount).toBe(1);
    busy.push(await pool.connect());
    await time.advance(1000);
    const read = engine.read({ keys: [], ranges: [] }).catch((error: unknown) => error);
    await time.advance(6000);
    expect(await read).toMatchObject({ code: 'PAWL_ENGINE_UNAVAILABLE', outcome: 'definite' });
    await engine.close();
    for (const client of busy) client.release();
    await expect.poll(() => pool.waitingCount).toBe(0);
  });

  it('says what can be lost by how Postgres is run', async () => {
    const pool = connect();
    const engine = await postgresEngine({ pool, schema: newSchema() });
    const settings = async () =>
      Object.fromEntries(((await engine.check?.()) ?? []).map((f) => [f.setting.split(' ')[0], f]));
    expect(await settings()).toMatchObject({
      fsync: { setting: 'fsync on', warning: null },
      synchronous_commit: { setting: 'synchronous_commit on', warning: null },
      synchronous_standby_names: { warning: expect.stringContaining('failover') },
    });
    await pool.query('ALTER DATABASE postgres SET synchronous_commit = off');
    const later = await postgresEngine({ pool: connect(), schema: newSchema() });
    const findings = (await later.check?.()) ?? [];
    expect(findings.find((f) => f.setting === 'synchronous_commit off')?.warning).toContain('crash');
    await pool.query('ALTER DATABASE postgres RESET synchronous_commit');
    await engine.close();
    await later.close();
  });

  it('the documented program runs', () => {
    const address = {
      PGHOST: '127.0.0.1',
      PGPORT: `${server.port}`,
      PGUSER: 'postgres',
      PGDATABASE: 'postgres',
    };
    expect(runDocumented('postgres', address)).toMatch(/^token \d+\n$/);
  });

  it('refuses a schema of a newer Pawl, what is no pool, and a senseless schema', async () => {
    const [pool, schema] = [connect(), newSchema()];
    await (await postgresEngine({ pool, schema })).close();
    await pool.query(`UPDATE ${schema}.meta SET format = 2`);
    await expect(postgresEngine({ pool, schema })).rejects.toMatchObject({ code: 'PAWL_STORE_VERSION' });
    const invalid = { code: 'PAWL_INVALID_ARGUMENT' };
    await expect(postgresEngine({ pool: {} as PostgresPool })).rejects.toMatchObject(invalid);
    for (const each of ['', 'A', 'a b', '1a', 'a"; DROP SCHEMA x', 'x'.repeat(41)]) {
      await expect(postgresEngine({ pool, schema: each })).rejects.toMatchObject(invalid);
    }
  });
});
