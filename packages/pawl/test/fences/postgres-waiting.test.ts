import { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postgresFence } from '../../src/fences/postgres/index.ts';
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

  it('S7: those who waited for one that was undone are honoured', async () => {
    const fence = newFence();
    await fence.raise(pool, 'x', 5n);
    const [first, same, next] = await Promise.all(Array.from({ length: 3 }, () => pool.connect()));
    if (first === undefined || same === undefined || next === undefined) throw new Error('no connection');
    await fence.begin(first, 7n, 'x');
    const honoured = [
      fence.begin(same, 5n, 'x').then(() => same.query('COMMIT')),
      fence.begin(next, 6n, 'x'),
    ];
    await untilWaiting(2);
    await first.query('ROLLBACK');
    await Promise.all(honoured);
    await next.query('COMMIT');
    expect(await highest()).toEqual([{ token: '6' }]);
    for (const client of [first, same, next]) client.release();
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
});
