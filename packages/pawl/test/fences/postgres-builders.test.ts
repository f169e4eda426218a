import { sql as drizzleSql, eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgTable } from 'drizzle-orm/pg-core';
import { Kysely, PostgresDialect, sql } from 'kysely';
import { Pool } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { columnFence, installGuard, postgresFence } from '../../src/fences/postgres/index.ts';
import { PostgresServer, postgresPrograms } from '../engines/postgres-server.ts';

const bin = postgresPrograms();
const stale = expect.objectContaining({ code: 'PAWL_STALE_TOKEN', resource: 'account:1', highest: 7n });
const usage = expect.objectContaining({ code: 'PAWL_FENCE_USAGE' });

describe.skipIf(bin === undefined)('the fence in Postgres, by other ways', () => {
  const server = new PostgresServer(bin ?? '');
  let pool: Pool;
  const address = () => ({
    host: '127.0.0.1',
    port: server.port,
    user: 'postgres',
    database: 'postgres',
    max: 4,
  });
  beforeAll(async () => {
    await server.start();
    pool = new Pool(address());
    pool.on('error', () => {});
  }, 60_000);
  afterAll(async () => {
    await pool.end();
    await server.stop();
  });
  beforeEach(async () => {
    await pool.query('DROP SCHEMA IF EXISTS pawl_fence CASCADE; DROP TABLE IF EXISTS account');
    await pool.query('CREATE TABLE account (id int PRIMARY KEY, value int NOT NULL, fence bigint)');
    await pool.query('INSERT INTO account VALUES (1, 0)');
    await installGuard(pool, { table: 'account', mode: 'enforce' });
  });
  const value = async () => (await pool.query('SELECT value FROM account')).rows[0].value;

  it('S7: with Kysely', async () => {
    const db = new Kysely<{ account: { id: number; value: number } }>({
      dialect: new PostgresDialect({ pool: new Pool(address()) }),
    });
    const fence = postgresFence();
    const write = (token: bigint, to: number) =>
      db.transaction().execute(async (trx) => {
        await fence.fenced({ query: (text) => sql.raw(text).execute(trx) }, token, 'account:1');
        await trx.updateTable('account').set({ value: to }).where('id', '=', 1).execute();
      });
    await write(7n, 1);
    await expect(write(6n, 2)).rejects.toThrow(stale);
    await write(7n, 3);
    expect(await value()).toBe(3);
    await expect(
      fence.fenced({ query: (text) => sql.raw(text).execute(db) }, 9n, 'account:1'),
    ).rejects.toThrow(usage);
    await fence.raise({ query: (text) => sql.raw(text).execute(db) }, 'account:1', 8n);
    await expect(write(7n, 4)).rejects.toThrow(expect.objectContaining({ highest: 8n }));
    await db.destroy();
  });

  it('S7: with Drizzle', async () => {
    const db = drizzle({ client: pool });
    const account = pgTable('account', { id: integer('id'), value: integer('value') });
    const fence = postgresFence();
    const write = (token: bigint, to: number) =>
      db.transaction(async (tx) => {
        await fence.fenced({ query: (text) => tx.execute(drizzleSql.raw(text)) }, token, 'account:1');
        await tx.update(account).set({ value: to }).where(eq(account.id, 1));
      });
    await write(7n, 1);
    await expect(write(6n, 2)).rejects.toThrow(stale);
    await write(7n, 3);
    expect(await value()).toBe(3);
    await expect(
      fence.fenced({ query: (text) => db.execute(drizzleSql.raw(text)) }, 9n, 'account:1'),
    ).rejects.toThrow(usage);
  });

  it('S7: with plain SQL, as Prisma and programs in other languages do', async () => {
    const write = async (token: string, to: number) => {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        await client.query('CALL pawl_fence.honour($1, $2)', ['account:1', token]);
        await client.query('UPDATE account SET value = $1', [to]);
        await client.query('COMMIT');
      } finally {
        await client.query('ROLLBACK');
        client.release();
      }
    };
    await write('7', 1);
    await expect(write('6', 2)).rejects.toThrow(
      expect.objectContaining({ code: 'PW001', message: expect.stringContaining('has honoured 7') }),
    );
    for (const none of [null as unknown as string, '0']) {
      await expect(write(none, 2)).rejects.toThrow(expect.objectContaining({ code: 'PW002' }));
    }
    expect(await value()).toBe(1);
  });

  describe('the column fence', () => {
    beforeEach(() => pool.query('DROP TRIGGER zzz_pawl_guard ON account'));
    const write = async (token: bigint, id: number, to: number) => {
      const column = columnFence('account:1', token, { position: 3 });
      const { rowCount } = await pool.query(
        `UPDATE account SET value = $2, ${column.set} WHERE id = $1 AND ${column.where}`,
        [id, to, ...column.values],
      );
      return column.settle(pool, rowCount, 'account WHERE id = $1', [id]);
    };

    it('S7: lets equal and higher tokens write, and tells a stale token from a row that is not there', async () => {
      expect(await write(7n, 1, 1)).toBe(true);
      await expect(write(6n, 1, 2)).rejects.toThrow(stale);
      expect(await write(7n, 1, 3)).toBe(true);
      expect(await write(8n, 1, 4)).toBe(true);
      expect(await write(6n, 2, 5)).toBe(false);
      expect(await value()).toBe(4);
    });

    it('S7: of two that write at once the higher token stays', async () => {
      for (let token = 10n; token < 40n; token += 2n) {
        const [low] = await Promise.allSettled([
          write(token, 1, Number(token)),
          write(token + 1n, 1, Number(token) + 1),
        ]);
        if (low.status === 'rejected') expect(low.reason).toMatchObject({ highest: token + 1n });
        expect(await value()).toBe(Number(token) + 1);
      }
    });

    it('S7: refuses no token, and a parameter that is none', () => {
      expect(() => columnFence('a', undefined, { position: 1 })).toThrow(
        expect.objectContaining({ code: 'PAWL_MISSING_TOKEN' }),
      );
      expect(() => columnFence('a', 1n, { position: 0 })).toThrow(usage);
    });
  });
});
