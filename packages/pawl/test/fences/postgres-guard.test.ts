import { describe, expect, it } from 'vitest';
import { guardReport, removeGuard } from '../../src/fences/postgres/index.ts';
import { postgresPrograms } from '../engines/postgres-server.ts';
import { GuardedInvoices, pay } from './guarded-invoices.ts';

const bin = postgresPrograms();
const usage = expect.objectContaining({ code: 'PAWL_FENCE_USAGE' });
/** What the database says of a write that carries no token, and of one with a stale token. */
const missing = expect.objectContaining({ code: 'PW002' });
const stale = expect.objectContaining({ code: 'PW001' });

describe.skipIf(bin === undefined)('the guard in Postgres', () => {
  const invoices = new GuardedInvoices(bin ?? '');

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
      await invoices.guard();
      await expect(invoices.pool.query(text)).rejects.toThrow(missing);
      expect(
        (await invoices.pool.query('SELECT count(*)::int AS n, sum(paid)::int AS paid FROM invoices')).rows,
      ).toEqual([{ n: 9, paid: 0 }]);
      await invoices.fence.transaction(invoices.pool, 'r', 1n, (client) => client.query(text));
    });

    it('the refusal says what was wrong and how to fix it', async () => {
      await invoices.guard({ resource: 'ledger' });
      const error = await invoices.pool.query('DELETE FROM invoices').catch((each) => each);
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
      await invoices.guard({ resource: 'ledger' });
      await expect(
        invoices.fence.transaction(invoices.pool, 'other', 9n, (client) => pay(client, 1)),
      ).rejects.toThrow(
        expect.objectContaining({
          code: 'PW002',
          message: expect.stringContaining('only the token of another resource'),
        }),
      );
      await invoices.fence.transaction(invoices.pool, 'ledger', 9n, (client) => pay(client, 1));
      expect(await invoices.paid(1)).toBe(1);
    });

    it('S7: the token of one transaction is not that of the next', async () => {
      await invoices.guard();
      await invoices.inTransaction(async (client) => {
        await invoices.fence.fenced(client, 5n, 'ledger');
        await pay(client, 1);
        await client.query('COMMIT');
        await expect(pay(client, 1, 2)).rejects.toThrow(missing);
        await invoices.fence.raise(client, 'ledger', 6n);
        await expect(pay(client, 1, 2)).rejects.toThrow(missing);
      });
      expect(await invoices.paid(1)).toBe(1);
    });

    it.each([
      ['any resource', {}],
      ['one', { resource: 'ledger' }],
    ])(
      'S7: a setting that somebody made by hand, or left to the session, is no token of %s',
      async (_what, options) => {
        await invoices.guard(options);
        await invoices.fence.raise(invoices.pool, 'ledger', 5n);
        await invoices.inTransaction(async (client) => {
          await invoices.fence.fenced(client, 5n, 'ledger');
          await client.query(
            "SELECT set_config('pawl_fence.tokens', current_setting('pawl_fence.tokens'), false)",
          );
          await client.query('COMMIT');
          await expect(pay(client, 1)).rejects.toThrow(missing);
          await client.query('RESET pawl_fence.tokens');
          await client.query('BEGIN');
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
          const raised = invoices.fence.raise(invoices.pool, 'ledger', 6n);
          await client.query('COMMIT');
          await raised;
        });
        expect(await invoices.paid(1)).toBe(1);
      },
    );

    it('S7: a token that was honoured in a part that was rolled back counts no more', async () => {
      await invoices.guard();
      await invoices.inTransaction(async (client) => {
        await client.query('SAVEPOINT part');
        await invoices.fence.fenced(client, 5n, 'ledger');
        await pay(client, 1);
        await client.query('ROLLBACK TO part');
        await expect(pay(client, 1)).rejects.toThrow(missing);
      });
    });

    it('S7: with a column in its resource each row needs its own token', async () => {
      await invoices.guard({ resource: 'invoice:{id}' });
      await invoices.fence.transaction(invoices.pool, 'invoice:1', 1n, (client) => pay(client, 1));
      const other = invoices.fence.transaction(invoices.pool, 'invoice:1', 1n, (client) => pay(client, 2));
      await expect(other).rejects.toThrow(
        expect.objectContaining({ code: 'PW002', message: expect.stringContaining('"invoice:2"') }),
      );
      const all = invoices.fence.transaction(invoices.pool, 'invoice:1', 1n, (client) =>
        client.query('UPDATE invoices SET paid = 7'),
      );
      await expect(all).rejects.toThrow(missing);
      // Neither into a row of another's nor out of one.
      for (const text of [
        'UPDATE invoices SET id = 11 WHERE id = 1',
        'UPDATE invoices SET id = 1 WHERE id = 3',
      ]) {
        await expect(
          invoices.fence.transaction(invoices.pool, 'invoice:1', 1n, (client) => client.query(text)),
        ).rejects.toThrow(missing);
      }
      await invoices.inTransaction(async (client) => {
        await invoices.fence.fenced(client, 1n, 'invoice:2');
        await invoices.fence.fenced(client, 1n, 'invoice:12');
        await client.query('UPDATE invoices SET id = 12 WHERE id = 2');
        await client.query('INSERT INTO invoices (id) VALUES (2)');
        await client.query('DELETE FROM invoices WHERE id IN (2, 12)');
        await client.query('SAVEPOINT part');
        await expect(client.query('TRUNCATE invoices')).rejects.toThrow(/one by one/);
        await client.query('ROLLBACK TO part');
      });
      expect((await invoices.pool.query('SELECT count(*)::int AS n FROM invoices')).rows[0].n).toBe(8);
    });

    it('S7: it sees a row as other triggers have left it', async () => {
      await invoices.pool.query(`
        CREATE OR REPLACE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := NEW.id + 100; RETURN NEW; END $$;
        CREATE TRIGGER move BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION move()`);
      await invoices.guard({ resource: 'invoice:{id}' });
      const insert = (client: { query(text: string): Promise<unknown> }) =>
        client.query('INSERT INTO invoices (id) VALUES (20)');
      await expect(invoices.fence.transaction(invoices.pool, 'invoice:20', 1n, insert)).rejects.toThrow(
        missing,
      );
      await invoices.fence.transaction(invoices.pool, 'invoice:120', 1n, insert);
    });

    it('S7: it cannot be gone round by the partitions of a table', async () => {
      await invoices.pool.query(`
        CREATE TABLE parts (id int, at int) PARTITION BY LIST (at);
        CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1)`);
      await invoices.guard({ table: 'parts', resource: 'ledger' });
      await invoices.pool.query('CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2)');
      for (const text of [
        'INSERT INTO parts VALUES (1, 1)',
        'INSERT INTO parts_1 VALUES (1, 1)',
        'INSERT INTO parts_2 VALUES (1, 2)',
      ]) {
        await expect(invoices.pool.query(text)).rejects.toThrow(missing);
        await invoices.fence.transaction(invoices.pool, 'ledger', 1n, (client) => client.query(text));
      }
      await expect(invoices.pool.query('TRUNCATE parts')).rejects.toThrow(missing);
      // Postgres tells this to no trigger of the table; the documentation says so.
      await invoices.pool.query('TRUNCATE parts_1');
      expect((await guardReport(invoices.pool)).guards).toContainEqual({
        table: 'public.parts',
        mode: 'enforce',
        resource: 'ledger',
      });
      await invoices.pool.query('DROP TABLE parts');
    });

    it('S7: it holds for a role that has no right on the fence’s tables', async () => {
      await invoices.guard();
      await invoices.pool.query('CREATE ROLE stranger LOGIN; GRANT ALL ON invoices TO stranger');
      const own = invoices.connect('stranger', 'stranger');
      await expect(pay(own, 1)).rejects.toThrow(missing);
      await invoices.guard({ mode: 'audit' });
      await pay(own, 1);
      await own.end();
      expect((await guardReport(invoices.pool)).unfenced).toMatchObject([
        { role: 'stranger', application: 'stranger' },
      ]);
    });
  });

  describe('to install', () => {
    it('changes the mode in one step, and removal leaves nothing of it', async () => {
      await invoices.guard({ mode: 'audit', resource: 'a{id}b' });
      await invoices.guard({ mode: 'enforce', resource: "o'clock \\ {id}" });
      expect((await guardReport(invoices.pool)).guards).toEqual([
        { table: 'public.invoices', mode: 'enforce', resource: "o'clock \\ {id}" },
      ]);
      await invoices.fence.transaction(invoices.pool, "o'clock \\ 1", 1n, (client) => pay(client, 1));
      await expect(pay(invoices.pool, 1)).rejects.toThrow(missing);
      await removeGuard(invoices.pool, { table: 'invoices' });
      await removeGuard(invoices.pool, { table: 'invoices' });
      await pay(invoices.pool, 1, 3);
      expect(await guardReport(invoices.pool)).toEqual({ guards: [], unfenced: [] });
      const triggers = await invoices.pool.query("SELECT 1 FROM pg_trigger WHERE tgname LIKE '%pawl%'");
      expect(triggers.rows).toEqual([]);
    });

    it('to look for it, or to remove it where it never was, makes nothing', async () => {
      const options = { table: 'invoices', schema: 'never_made' };
      expect(await guardReport(invoices.pool, options)).toEqual({ guards: [], unfenced: [] });
      await removeGuard(invoices.pool, options);
      const made = await invoices.pool.query("SELECT 1 FROM pg_namespace WHERE nspname = 'never_made'");
      expect(made.rows).toEqual([]);
    });

    it('works on tables with names of any kind', async () => {
      await invoices.pool.query(
        'CREATE SCHEMA IF NOT EXISTS "My Schema"; CREATE TABLE "My Schema"."a ""b" ("I d" int)',
      );
      await invoices.guard({ table: '"My Schema"."a ""b"', resource: 'x{I d}' });
      await expect(invoices.pool.query('INSERT INTO "My Schema"."a ""b" VALUES (1)')).rejects.toThrow(/"x1"/);
      await invoices.pool.query('DROP SCHEMA "My Schema" CASCADE');
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
      await expect(invoices.guard(options)).rejects.toThrow(usage);
    });

    it('does not wait for long behind a writer that is under way', async () => {
      await invoices.inTransaction(async (client) => {
        await pay(client, 1);
        await expect(invoices.guard({ lockTimeoutMs: 50 })).rejects.toThrow(/lock timeout/);
      });
      expect((await guardReport(invoices.pool)).guards).toEqual([]);
    });
  });
});
