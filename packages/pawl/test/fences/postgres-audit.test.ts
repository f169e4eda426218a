import { describe, expect, it } from 'vitest';
import { guardReport } from '../../src/fences/postgres/index.ts';
import { postgresPrograms } from '../engines/postgres-server.ts';
import { GuardedInvoices, pay } from './guarded-invoices.ts';

const bin = postgresPrograms();

describe.skipIf(bin === undefined)('the guard in Postgres, in audit', () => {
  const invoices = new GuardedInvoices(bin ?? '');

  it('lists the programs and statements that write unfenced, with how often and why', async () => {
    await invoices.guard({ mode: 'audit', resource: 'ledger' });
    const nightly = invoices.connect('nightly-job');
    await pay(nightly, 1);
    await pay(nightly, 2);
    await nightly.query("UPDATE invoices SET note = 'it''s 3', paid = 12.5 WHERE id IN (1, 2, 3)");
    await nightly.query("UPDATE invoices SET note = 'x', paid = 7 WHERE id IN (4)");
    await invoices.fence.transaction(nightly, 'other', 1n, (client) =>
      client.query('DELETE FROM invoices WHERE id = 9'),
    );
    await invoices.fence.transaction(nightly, 'ledger', 1n, (client) => pay(client, 5));
    await nightly.end();
    const { guards, unfenced } = await guardReport(invoices.pool);
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
    expect(await invoices.paid(1)).toBe(13);
  });

  it('writers of the same statement do not wait for each other, and all are counted', async () => {
    await invoices.guard({ mode: 'audit' });
    const clients = await Promise.all([1, 2, 3].map(() => invoices.pool.connect()));
    for (const round of [0, 1]) {
      for (const client of clients) await client.query('BEGIN');
      for (const [i, client] of clients.entries()) await pay(client, 1 + i + 3 * round);
      for (const [i, client] of clients.entries()) await pay(client, 1 + i + 3 * round);
      for (const client of clients) await client.query('COMMIT');
    }
    for (const client of clients) client.release();
    expect((await guardReport(invoices.pool)).unfenced).toMatchObject([{ count: 12 }]);
    const rows = await invoices.pool.query('SELECT count(*)::int AS n FROM pawl_fence.unfenced');
    expect(rows.rows[0].n).toBe(3);
  });

  it.each(['REPEATABLE READ', 'SERIALIZABLE'])('makes no transaction fail under %s', async (level) => {
    await invoices.guard({ mode: 'audit' });
    const clients = await Promise.all([1, 2].map(() => invoices.pool.connect()));
    for (const client of clients) await client.query(`BEGIN ISOLATION LEVEL ${level}`);
    for (const [i, client] of clients.entries()) await pay(client, 1 + i);
    for (const client of clients) await client.query('COMMIT');
    for (const client of clients) client.release();
    for (let i = 0; i < 120; i += 1)
      await invoices.pool.query(
        `BEGIN ISOLATION LEVEL ${level}; UPDATE invoices SET paid = 2 WHERE id = 1; COMMIT`,
      );
    const { unfenced } = await guardReport(invoices.pool);
    expect(unfenced.reduce((sum, { count }) => sum + count, 0)).toBe(122);
    expect(
      (await invoices.pool.query('SELECT count(*)::int AS n FROM pawl_fence.unfenced')).rows[0].n,
    ).toBeLessThan(10);
  });

  it('a failure to record lets the write pass', async () => {
    await invoices.guard({ mode: 'audit' });
    await invoices.pool.query('ALTER TABLE pawl_fence.unfenced RENAME TO hidden');
    await pay(invoices.pool, 1, 4);
    await invoices.pool.query('ALTER TABLE pawl_fence.hidden RENAME TO unfenced');
    expect(await invoices.paid(1)).toBe(4);
  });

  it('counts a statement of the client once, however many rows and inner statements it has', async () => {
    await invoices.guard({ mode: 'audit', resource: 'invoice:{id}' });
    const upsert =
      'INSERT INTO invoices (id) SELECT generate_series(5, 15) ON CONFLICT (id) DO UPDATE SET paid = 1';
    await invoices.pool.query(upsert);
    await invoices.pool.query(upsert);
    await invoices.pool.query(
      'DO $$ BEGIN FOR i IN 1..9 LOOP DELETE FROM invoices WHERE id = i; END LOOP; END $$',
    );
    const { unfenced } = await guardReport(invoices.pool);
    expect(unfenced.map(({ operation, count }) => `${operation} ${count}`).sort()).toEqual([
      'DELETE 1',
      'INSERT 2',
      'UPDATE 2',
    ]);
  });

  it('says of rows with a column in the resource whose token was missing', async () => {
    await invoices.guard({ mode: 'audit', resource: 'invoice:{id}' });
    await invoices.pool.query('UPDATE invoices SET paid = 1');
    await invoices.pool.query('TRUNCATE invoices');
    expect((await guardReport(invoices.pool)).unfenced).toMatchObject([
      { operation: 'TRUNCATE', count: 1 },
      { operation: 'UPDATE', count: 1, reason: 'no token' },
    ]);
  });

  it('a fenced and an unfenced program at once: audit names the unfenced one, enforce refuses it, the fenced one never notices', async () => {
    const [app, legacy] = [invoices.connect('app'), invoices.connect('legacy-importer')];
    const load = async () => {
      const refusals: unknown[] = [];
      const fenced = async (id: number) => {
        for (let i = 0; i < 25; i += 1) {
          await invoices.fence.transaction(app, `invoice:${id}`, BigInt(i + 1), (client) =>
            pay(client, id, i),
          );
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
    await invoices.guard({ mode: 'audit', resource: 'invoice:{id}' });
    expect(await load()).toEqual([]);
    const { unfenced } = await guardReport(invoices.pool);
    expect(new Set(unfenced.map(({ application }) => application))).toEqual(new Set(['legacy-importer']));
    expect(new Set(unfenced.map(({ query }) => query))).toEqual(
      new Set(['INSERT INTO invoices AS i (id, paid) VALUES (?, …) ON CONFLICT (id) DO UPDATE SET paid = ?']),
    );
    await invoices.pool.query('DELETE FROM pawl_fence.token');
    await invoices.guard({ mode: 'enforce', resource: 'invoice:{id}' });
    const refusals = await load();
    expect(refusals).toHaveLength(50);
    for (const each of refusals)
      expect(each).toEqual(expect.objectContaining({ message: expect.stringContaining('To fix it') }));
    await app.end();
    await legacy.end();
  }, 60_000);
});
