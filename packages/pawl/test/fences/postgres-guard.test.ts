import { Pool, type PoolClient } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  guardReport,
  installGuard,
  type PostgresGuardOptions,
  postgresFence,
  removeGuard,
} from '../../src/fences/postgres/index.ts';
import { PostgresServer, postgresPrograms } from '../engines/postgres-server.ts';

const bin = postgresPrograms();
const usage = expect.objectContaining({ code: 'PAWL_FENCE_USAGE' });
/** What the database says of a write that carries no token, and of one with a stale token. */
const missing = expect.objectContaining({ code: 'PW002' });
const stale = expect.objectContaining({ code: 'PW001' });

describe.skipIf(bin === undefined)('the guard in Postgres', () => {
  const server = new PostgresServer(bin ?? '');
  const fence = postgresFence();
  let pool: Pool;

  const connect = (application_name: string, user = 'postgres') => {
    const made = new Pool({
      host: '127.0.0.1',
      port: server.port,
      user,
      database: 'postgres',
      max: 4,
      application_name,
    });
    made.on('error', () => {});
    return made;
  };
  beforeAll(async () => {
    await server.start();
    pool = connect('operator');
  }, 60_000);
  afterAll(async () => {
    await pool.end();
    await server.stop();
  });
  beforeEach(async () => {
    await pool.query('DROP TABLE IF EXISTS invoices CASCADE');
    await pool.query('CREATE TABLE invoices (id int PRIMARY KEY, paid int NOT NULL DEFAULT 0, note text)');
    await pool.query('INSERT INTO invoices (id) SELECT generate_series(1, 9)');
    await fence.migrate(pool);
    await pool.query('TRUNCATE pawl_fence.unfenced; DELETE FROM pawl_fence.token');
  });

  const guard = (options: Partial<PostgresGuardOptions> = {}) =>
    installGuard(pool, { table: 'invoices', mode: 'enforce', ...options });
  const inTransaction = async (work: (client: PoolClient) => Promise<unknown>) => {
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      await work(client);
      await client.query('COMMIT');
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  };
  const paid = async (id: number) =>
    (await pool.query('SELECT paid FROM invoices WHERE id = $1', [id])).rows[0]?.paid;
  const pay = (on: { query(text: string, values: unknown[]): Promise<unknown> }, id: number, value = 1) =>
    on.query('UPDATE invoices SET paid = $1 WHERE id = $2', [value, id]);

  describe('enforced', () => {
    it.each([
      ['INSERT', 'INSERT INTO invoices (id) VALUES (10)'],
      ['UPDATE', 'UPDATE invoices SET paid = 1'],
      ['DELETE', 'DELETE FROM invoices'],
      ['TRUNCATE', 'TRUNCATE invoices'],
      ['upsert', 'INSERT INTO invoices (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET paid = 1'],
      ['write in a WITH', 'WITH gone AS (DELETE FROM invoices RETURNING *) SELECT count(*) FROM gone'],
      ['write in a function', 'DO $$ BEGIN UPDATE invoices SET paid = 1; END $$'],
    ])('S7: an %s without a token is refused, and reading is not', async (_what, text) => {
      await guard();
      await expect(pool.query(text)).rejects.toThrow(missing);
      expect(
        (await pool.query('SELECT count(*)::int AS n, sum(paid)::int AS paid FROM invoices')).rows,
      ).toEqual([{ n: 9, paid: 0 }]);
      await fence.transaction(pool, 'r', 1n, (client) => client.query(text));
    });

    it('the refusal says what was wrong and how to fix it', async () => {
      await guard({ resource: 'ledger' });
      const error = await pool.query('DELETE FROM invoices').catch((each) => each);
      expect(error.message).toBe(
        'public.invoices is fenced and refused this DELETE: its transaction carries no token where it needs that of "ledger". ' +
          "To fix it, acquire the lock and call fenced(tx, lease, 'ledger') of pawl/fences/postgres in the transaction, before the write " +
          "(from other languages: CALL pawl_fence.honour('ledger', TOKEN)).",
      );
      expect(error).toMatchObject({
        schema: 'public',
        table: 'invoices',
        hint: expect.stringContaining('--audit'),
      });
    });

    it('S7: needs the token of its own resource where it has one', async () => {
      await guard({ resource: 'ledger' });
      await expect(fence.transaction(pool, 'other', 9n, (client) => pay(client, 1))).rejects.toThrow(
        expect.objectContaining({
          code: 'PW002',
          message: expect.stringContaining('only the token of another resource'),
        }),
      );
      await fence.transaction(pool, 'ledger', 9n, (client) => pay(client, 1));
      expect(await paid(1)).toBe(1);
    });

    it('S7: the token of one transaction is not that of the next', async () => {
      await guard();
      await inTransaction(async (client) => {
        await fence.fenced(client, 5n, 'ledger');
        await pay(client, 1);
        await client.query('COMMIT');
        await expect(pay(client, 1, 2)).rejects.toThrow(missing);
        await fence.raise(client, 'ledger', 6n);
        await expect(pay(client, 1, 2)).rejects.toThrow(missing);
      });
      expect(await paid(1)).toBe(1);
    });

    it('S7: a setting that somebody made by hand, or left to the session, is no token', async () => {
      await guard();
      await fence.raise(pool, 'ledger', 5n);
      await inTransaction(async (client) => {
        await fence.fenced(client, 5n, 'ledger');
        await client.query(
          "SELECT set_config('pawl_fence.tokens', current_setting('pawl_fence.tokens'), false)",
        );
        await client.query('COMMIT');
        await expect(pay(client, 1)).rejects.toThrow(missing);
        await client.query('RESET pawl_fence.tokens; BEGIN');
        const forge = (token: number) =>
          client.query(
            `SELECT set_config('pawl_fence.tokens', concat(chr(30), txid_current(), ' ${token} ledger', chr(30)), true)`,
          );
        await forge(4);
        await expect(pay(client, 1)).rejects.toThrow(stale);
        await client.query('ROLLBACK; BEGIN');
        await forge(5);
        // Now its row is locked, as if it had called the fence.
        await pay(client, 1);
        const raised = fence.raise(pool, 'ledger', 6n);
        await client.query('COMMIT');
        await raised;
      });
      expect(await paid(1)).toBe(1);
    });

    it('S7: a token that was honoured in a part that was rolled back counts no more', async () => {
      await guard();
      await inTransaction(async (client) => {
        await client.query('SAVEPOINT part');
        await fence.fenced(client, 5n, 'ledger');
        await pay(client, 1);
        await client.query('ROLLBACK TO part');
        await expect(pay(client, 1)).rejects.toThrow(missing);
      });
    });

    it('S7: with a column in its resource each row needs its own token', async () => {
      await guard({ resource: 'invoice:{id}' });
      await fence.transaction(pool, 'invoice:1', 1n, (client) => pay(client, 1));
      const other = fence.transaction(pool, 'invoice:1', 1n, (client) => pay(client, 2));
      await expect(other).rejects.toThrow(
        expect.objectContaining({ code: 'PW002', message: expect.stringContaining('"invoice:2"') }),
      );
      const all = fence.transaction(pool, 'invoice:1', 1n, (client) =>
        client.query('UPDATE invoices SET paid = 7'),
      );
      await expect(all).rejects.toThrow(missing);
      // Neither into a row of another's nor out of one.
      for (const text of [
        'UPDATE invoices SET id = 11 WHERE id = 1',
        'UPDATE invoices SET id = 1 WHERE id = 3',
      ]) {
        await expect(
          fence.transaction(pool, 'invoice:1', 1n, (client) => client.query(text)),
        ).rejects.toThrow(missing);
      }
      await inTransaction(async (client) => {
        await fence.fenced(client, 1n, 'invoice:2');
        await fence.fenced(client, 1n, 'invoice:12');
        await client.query('UPDATE invoices SET id = 12 WHERE id = 2');
        await client.query('INSERT INTO invoices (id) VALUES (2)');
        await client.query('DELETE FROM invoices WHERE id IN (2, 12)');
        await client.query('SAVEPOINT part');
        await expect(client.query('TRUNCATE invoices')).rejects.toThrow(/one by one/);
        await client.query('ROLLBACK TO part');
      });
      expect((await pool.query('SELECT count(*)::int AS n FROM invoices')).rows[0].n).toBe(8);
    });

    it('S7: it sees a row as other triggers have left it', async () => {
      await pool.query(`
        CREATE OR REPLACE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := NEW.id + 100; RETURN NEW; END $$;
        CREATE TRIGGER move BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION move()`);
      await guard({ resource: 'invoice:{id}' });
      const insert = (client: { query(text: string): Promise<unknown> }) =>
        client.query('INSERT INTO invoices (id) VALUES (20)');
      await expect(fence.transaction(pool, 'invoice:20', 1n, insert)).rejects.toThrow(missing);
      await fence.transaction(pool, 'invoice:120', 1n, insert);
    });

    it('S7: it cannot be gone round by the partitions of a table', async () => {
      await pool.query(`
        CREATE TABLE parts (id int, at int) PARTITION BY LIST (at);
        CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1)`);
      await guard({ table: 'parts', resource: 'ledger' });
      await pool.query('CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2)');
      for (const text of [
        'INSERT INTO parts VALUES (1, 1)',
        'INSERT INTO parts_1 VALUES (1, 1)',
        'INSERT INTO parts_2 VALUES (1, 2)',
      ]) {
        await expect(pool.query(text)).rejects.toThrow(missing);
        await fence.transaction(pool, 'ledger', 1n, (client) => client.query(text));
      }
      await expect(pool.query('TRUNCATE parts')).rejects.toThrow(missing);
      expect((await guardReport(pool)).guards).toContainEqual({
        table: 'public.parts',
        mode: 'enforce',
        resource: 'ledger',
      });
      await pool.query('DROP TABLE parts');
    });

    it('S7: it holds for a role that has no right on the fence’s tables', async () => {
      await guard();
      await pool.query('CREATE ROLE stranger LOGIN; GRANT ALL ON invoices TO stranger');
      const own = connect('stranger', 'stranger');
      await expect(pay(own, 1)).rejects.toThrow(missing);
      await guard({ mode: 'audit' });
      await pay(own, 1);
      await own.end();
      expect((await guardReport(pool)).unfenced).toMatchObject([
        { role: 'stranger', application: 'stranger' },
      ]);
    });
  });

  describe('in audit', () => {
    it('lists the programs and statements that write unfenced, with how often and why', async () => {
      await guard({ mode: 'audit', resource: 'ledger' });
      const nightly = connect('nightly-job');
      await pay(nightly, 1);
      await pay(nightly, 2);
      await nightly.query("UPDATE invoices SET note = 'it''s 3', paid = 12.5 WHERE id IN (1, 2, 3)");
      await nightly.query("UPDATE invoices SET note = 'x', paid = 7 WHERE id IN (4)");
      await fence.transaction(nightly, 'other', 1n, (client) =>
        client.query('DELETE FROM invoices WHERE id = 9'),
      );
      await fence.transaction(nightly, 'ledger', 1n, (client) => pay(client, 5));
      await nightly.end();
      const { guards, unfenced } = await guardReport(pool);
      expect(guards).toEqual([{ table: 'public.invoices', mode: 'audit', resource: 'ledger' }]);
      const common = {
        table: 'public.invoices',
        application: 'nightly-job',
        role: 'postgres',
        firstAt: expect.any(Date),
      };
      expect(unfenced).toHaveLength(4);
      expect(unfenced[0]).toMatchObject({
        ...common,
        operation: 'UPDATE',
        reason: 'no token',
        query: 'UPDATE invoices SET paid = $1 WHERE id = $2',
        count: 2,
      });
      expect(unfenced.map(({ query }) => query)).toContain(
        'UPDATE invoices SET note = ?, paid = ? WHERE id IN (?, …)',
      );
      expect(unfenced).toContainEqual(
        expect.objectContaining({
          operation: 'DELETE',
          reason: 'token of another resource',
          query: 'DELETE FROM invoices WHERE id = ?',
        }),
      );
      const [first] = unfenced;
      expect(first?.lastAt.getTime()).toBeGreaterThanOrEqual(first?.firstAt.getTime() ?? 0);
      expect(await paid(1)).toBe(13);
    });

    it('writers of the same statement do not wait for each other, and all are counted', async () => {
      await guard({ mode: 'audit' });
      const clients = await Promise.all([1, 2, 3].map(() => pool.connect()));
      for (const round of [0, 1]) {
        for (const client of clients) await client.query('BEGIN');
        for (const [i, client] of clients.entries()) await pay(client, 1 + i + 3 * round);
        for (const [i, client] of clients.entries()) await pay(client, 1 + i + 3 * round);
        for (const client of clients) await client.query('COMMIT');
      }
      for (const client of clients) client.release();
      expect((await guardReport(pool)).unfenced).toMatchObject([{ count: 12 }]);
      const rows = await pool.query('SELECT count(*)::int AS n FROM pawl_fence.unfenced');
      expect(rows.rows[0].n).toBe(3);
    });

    it.each(['REPEATABLE READ', 'SERIALIZABLE'])('makes no transaction fail under %s', async (level) => {
      await guard({ mode: 'audit' });
      const clients = await Promise.all([1, 2].map(() => pool.connect()));
      for (const client of clients) await client.query(`BEGIN ISOLATION LEVEL ${level}`);
      for (const [i, client] of clients.entries()) await pay(client, 1 + i);
      for (const client of clients) await client.query('COMMIT');
      for (const client of clients) client.release();
      for (let i = 0; i < 120; i += 1)
        await pool.query(`BEGIN ISOLATION LEVEL ${level}; UPDATE invoices SET paid = 2 WHERE id = 1; COMMIT`);
      const { unfenced } = await guardReport(pool);
      expect(unfenced.reduce((sum, { count }) => sum + count, 0)).toBe(122);
      expect((await pool.query('SELECT count(*)::int AS n FROM pawl_fence.unfenced')).rows[0].n).toBeLessThan(
        10,
      );
    });

    it('a failure to record lets the write pass', async () => {
      await guard({ mode: 'audit' });
      await pool.query('ALTER TABLE pawl_fence.unfenced RENAME TO hidden');
      await pay(pool, 1, 4);
      await pool.query('ALTER TABLE pawl_fence.hidden RENAME TO unfenced');
      expect(await paid(1)).toBe(4);
    });

    it('says of rows with a column in the resource whose token was missing', async () => {
      await guard({ mode: 'audit', resource: 'invoice:{id}' });
      await pool.query('UPDATE invoices SET paid = 1');
      await pool.query('TRUNCATE invoices');
      expect((await guardReport(pool)).unfenced).toMatchObject([
        { operation: 'UPDATE', count: 9, reason: 'no token' },
        { operation: 'TRUNCATE', count: 1 },
      ]);
    });
  });

  it('a fenced and an unfenced program at once: audit names the unfenced one, enforce refuses it, the fenced one never notices', async () => {
    const [app, legacy] = [connect('app'), connect('legacy-importer')];
    const load = async () => {
      const refusals: unknown[] = [];
      const fenced = async (id: number) => {
        for (let i = 0; i < 25; i += 1) {
          await fence.transaction(app, `invoice:${id}`, BigInt(i + 1), (client) => pay(client, id, i));
        }
      };
      const unfenced = async (id: number) => {
        for (let i = 0; i < 25; i += 1) {
          await legacy
            .query(
              `INSERT INTO invoices AS i (id, paid) VALUES (${id}, ${i}) ON CONFLICT (id) DO UPDATE SET paid = ${i}`,
            )
            .catch((error) => refusals.push(error));
        }
      };
      await Promise.all([fenced(1), fenced(2), unfenced(3), unfenced(4)]);
      return refusals;
    };
    await guard({ mode: 'audit', resource: 'invoice:{id}' });
    expect(await load()).toEqual([]);
    const { unfenced } = await guardReport(pool);
    expect(new Set(unfenced.map(({ application }) => application))).toEqual(new Set(['legacy-importer']));
    expect(new Set(unfenced.map(({ query }) => query))).toEqual(
      new Set(['INSERT INTO invoices AS i (id, paid) VALUES (?, …) ON CONFLICT (id) DO UPDATE SET paid = ?']),
    );
    await pool.query('DELETE FROM pawl_fence.token');
    await guard({ mode: 'enforce', resource: 'invoice:{id}' });
    const refusals = await load();
    expect(refusals).toHaveLength(50);
    for (const each of refusals)
      expect(each).toEqual(expect.objectContaining({ message: expect.stringContaining('To fix it') }));
    await app.end();
    await legacy.end();
  }, 60_000);

  describe('to install', () => {
    it('changes the mode in one step, and removal leaves nothing of it', async () => {
      await guard({ mode: 'audit', resource: 'a{id}b' });
      await guard({ mode: 'enforce', resource: "o'clock \\ {id}" });
      expect((await guardReport(pool)).guards).toEqual([
        { table: 'public.invoices', mode: 'enforce', resource: "o'clock \\ {id}" },
      ]);
      await fence.transaction(pool, "o'clock \\ 1", 1n, (client) => pay(client, 1));
      await expect(pay(pool, 1)).rejects.toThrow(missing);
      await removeGuard(pool, { table: 'invoices' });
      await removeGuard(pool, { table: 'invoices' });
      await pay(pool, 1, 3);
      expect(await guardReport(pool)).toEqual({ guards: [], unfenced: [] });
      const triggers = await pool.query("SELECT 1 FROM pg_trigger WHERE tgname LIKE '%pawl%'");
      expect(triggers.rows).toEqual([]);
    });

    it('works on tables with names of any kind', async () => {
      await pool.query(
        'CREATE SCHEMA IF NOT EXISTS "My Schema"; CREATE TABLE "My Schema"."a ""b" ("I d" int)',
      );
      await guard({ table: '"My Schema"."a ""b"', resource: 'x{I d}' });
      await expect(pool.query('INSERT INTO "My Schema"."a ""b" VALUES (1)')).rejects.toThrow(/"x1"/);
      await pool.query('DROP SCHEMA "My Schema" CASCADE');
    });

    it.each([
      ['a table that is not there', { table: 'nothing' }],
      ['a view', { table: 'pg_catalog.pg_tables' }],
      ['no name', { table: '' }],
      ['a column that is not there', { resource: 'invoice:{number}' }],
      ['a brace that is not closed', { resource: 'invoice:{id' }],
      ['an empty resource', { resource: '' }],
      ['no mode', { mode: 'watch' as 'audit' }],
      ['a schema that is none', { schema: 'x; y' }],
    ])('refuses %s', async (_what, options) => {
      await expect(guard(options)).rejects.toThrow(usage);
    });

    it('does not wait for long behind a writer that is under way', async () => {
      await inTransaction(async (client) => {
        await pay(client, 1);
        await expect(guard({ lockTimeoutMs: 50 })).rejects.toThrow(/lock timeout/);
      });
      expect((await guardReport(pool)).guards).toEqual([]);
    });
  });
});
