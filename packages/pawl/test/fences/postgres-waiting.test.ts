import { randomBytes } from 'node:crypto';
import { Pool, type PoolClient } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { guardReport, installGuard, postgresFence } from '../../src/fences/postgres/index.ts';
import { PostgresServer, postgresPrograms } from '../engines/postgres-server.ts';

const bin = postgresPrograms();
const PATIENCE = { timeout: 10_000 };

describe.skipIf(bin === undefined)('transactions that wait for each other at a fence in Postgres', () => {
  const server = new PostgresServer(bin ?? '');
  let pool: Pool;
  let schemas = 0;
  beforeAll(async () => {
    await server.start();
    pool = new Pool({
      host: '127.0.0.1',
      port: server.port,
      user: 'postgres',
      database: 'postgres',
      max: 12,
    });
  }, 60_000);
  afterAll(async () => {
    await pool.end();
    await server.stop();
  });

  const newFence = () => {
    schemas += 1;
    return postgresFence({ schema: `waiting_${schemas}` });
  };
  const highest = async () => (await pool.query(`SELECT token FROM waiting_${schemas}.token`)).rows;
  const untilWaiting = (count: number) =>
    expect
      .poll(async () => {
        const { rows } = await pool.query("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
        return rows.length;
      }, PATIENCE)
      .toBe(count);

  it('S7: those who were overtaken while they waited are refused as stale, and not for a deadlock of two', async () => {
    const fence = newFence();
    await fence.raise(pool, 'x', 5n);
    const [first, ...others] = await Promise.all(Array.from({ length: 5 }, () => pool.connect()));
    if (first === undefined) throw new Error('no connection');
    await fence.begin(first, 6n, 'x');
    const late = others.map((client) =>
      fence.begin(client, 5n, 'x').then(
        () => 'honoured',
        (error) => `${error.code} ${error.highest}`,
      ),
    );
    await untilWaiting(others.length);
    await first.query('COMMIT');
    expect(await Promise.all(late)).toEqual(others.map(() => 'PAWL_STALE_TOKEN 6'));
    for (const client of [first, ...others]) client.release();
  });

  it.each([
    ['the same', 5n],
    ['a higher', 6n],
  ])('S7: who waited with %s token for one that was undone is honoured', async (_what, token) => {
    const fence = newFence();
    await fence.raise(pool, 'x', 5n);
    const [first, waiting] = await Promise.all([pool.connect(), pool.connect()]);
    await fence.begin(first, 7n, 'x');
    const honoured = fence.begin(waiting, token, 'x');
    await untilWaiting(1);
    await first.query('ROLLBACK');
    await honoured;
    await waiting.query('COMMIT');
    expect(await highest()).toEqual([{ token: String(token) }]);
    for (const client of [first, waiting]) client.release();
  });

  it('S7: the first guard waits for those who have honoured before it, and refuses and records none of them', async () => {
    const fence = newFence();
    const schema = `waiting_${schemas}`;
    await pool.query('CREATE TABLE guarded (paid int)');
    for (const resource of ['x', 'y']) await fence.raise(pool, resource, 5n);
    const clients = await Promise.all(Array.from({ length: 3 }, () => pool.connect()));
    const [before, meanwhile, own] = clients;
    if (before === undefined || meanwhile === undefined || own === undefined)
      throw new Error('no connection');
    const pay = async (client: PoolClient) => {
      await client.query('INSERT INTO guarded VALUES (1)');
      await client.query('COMMIT');
    };
    await fence.begin(before, 5n, 'x');
    await own.query('BEGIN');
    const guard = installGuard(pool, { table: 'guarded', mode: 'enforce', schema });
    await untilWaiting(1);
    const others = [fence.begin(meanwhile, 5n, 'y'), fence.fenced(own, 5n, 'x')];
    await untilWaiting(3);
    await pay(before);
    await Promise.all(others);
    await Promise.all([pay(meanwhile), pay(own)]);
    await guard;
    await expect(pool.query('INSERT INTO guarded VALUES (2)')).rejects.toThrow(/carries no token/);
    for (const resource of ['x', 'new']) {
      await fence.transaction(pool, resource, 5n, (client) => client.query('INSERT INTO guarded VALUES (3)'));
    }
    expect((await guardReport(pool, { schema })).unfenced).toEqual([]);
    for (const client of clients) client.release();
  });

  it('the tables are made once, however many make them at the same time', async () => {
    for (let round = 0; round < 5; round += 1) {
      const fence = newFence();
      const clients = await Promise.all(Array.from({ length: 6 }, () => pool.connect()));
      await Promise.all(
        clients.map(async (client) => {
          await client.query('BEGIN');
          await fence.fenced(client, 1n, 'x');
          await client.query('COMMIT');
        }),
      );
      for (const client of clients) client.release();
      expect(await highest()).toEqual([{ token: '1' }]);
    }
  });

  it('a connection that breaks while the effect does something else ends the transaction, and not the process', async () => {
    const fence = newFence();
    const seen: unknown[] = [];
    // Its own pool, whose connections are listened to only while they are idle.
    const own = new Pool({
      host: '127.0.0.1',
      port: server.port,
      user: 'postgres',
      database: 'postgres',
      max: 1,
    });
    own.on('error', () => {});
    const broken = fence.transaction(own, 'x', 1n, async (client: PoolClient) => {
      seen.push(client.listenerCount('error'));
      const { rows } = await client.query('SELECT pg_backend_pid() AS pid');
      const ended = new Promise((resolve) => client.once('end', resolve));
      await pool.query('SELECT pg_terminate_backend($1)', [rows[0].pid]);
      // An event that nobody listens to would fail this run.
      await ended;
      await client.query('SELECT 1');
    });
    await expect(broken).rejects.toThrow();
    for (let time = 0; time < 3; time += 1) {
      await fence.transaction(own, 'x', 1n, (client: PoolClient) => {
        seen.push(client.listenerCount('error'));
      });
    }
    // None is left behind.
    expect(new Set(seen).size).toBe(1);
    await own.end();
  });

  it('says of a name that Postgres cannot hold that it cannot', async () => {
    const fence = newFence();
    const long = randomBytes(3000).toString('base64');
    await expect(fence.raise(pool, long, 1n)).rejects.toMatchObject({
      code: 'PAWL_FENCE_USAGE',
      message: expect.stringContaining('too long'),
    });
    await fence.raise(pool, long.slice(0, 2048), 1n);
  });
});
