import { DatabaseSync } from 'node:sqlite';
import { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PostgresServer, postgresPrograms } from '../engines/postgres-server.ts';
import { Bench } from './cli.ts';

const bench = new Bench();
const bin = postgresPrograms();
const server = new PostgresServer(bin ?? '');

interface Ledger {
  readonly address: string;
  readonly table: string;
  exec(sql: string): Promise<unknown>;
  close(): Promise<void>;
}

async function inSqlite(): Promise<Ledger> {
  const address = bench.path('ledger.db');
  const db = new DatabaseSync(address);
  return { address, table: 'invoices', exec: async (sql) => db.exec(sql), close: async () => db.close() };
}

async function inPostgres(): Promise<Ledger> {
  const address = `postgres://postgres@127.0.0.1:${server.port}/postgres`;
  const pool = new Pool({ connectionString: address, max: 1, application_name: 'nightly-job' });
  pool.on('error', () => {});
  return { address, table: 'public.invoices', exec: (sql) => pool.query(sql), close: () => pool.end() };
}

describe.each([
  ['sqlite', true, inSqlite],
  ['postgres', bin !== undefined, inPostgres],
] as const)('pawl fence with %s', (name, have, open) => {
  beforeAll(async () => {
    if (name === 'postgres' && have) await server.start();
  }, 60_000);
  afterAll(async () => {
    if (name === 'postgres' && have) await server.stop();
  });

  it.skipIf(!have)('a table is moved over: audited, reported, enforced, removed', async () => {
    const ledger = await open();
    const fence = (action: string, ...args: string[]) =>
      bench.run('fence', action, '--db', ledger.address, ...args);
    await ledger.exec('CREATE TABLE invoices (id INTEGER PRIMARY KEY, paid INTEGER)');
    expect(await fence('report')).toMatchObject({ code: 0, stdout: 'No table has a guard.\n' });
    const audit = await fence('install', '--table', 'invoices', '--audit', '--resource', 'invoice:{id}');
    expect(audit, audit.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining('lets it pass') });
    await ledger.exec('INSERT INTO invoices VALUES (1, 0)');
    await ledger.exec('UPDATE invoices SET paid = 1 WHERE id = 1');
    const { stdout } = await fence('report');
    expect(stdout).toContain(`${ledger.table}  audit  needs the token of invoice:{id}`);
    expect(stdout).toContain(`${ledger.table}  UPDATE  1 time  no token`);
    if (name === 'postgres')
      expect(stdout).toMatch(/by nightly-job as postgres\n +UPDATE invoices SET paid = \? WHERE id = \?\n/);
    else expect(stdout).toMatch(/row 1\n +UPDATE paid\n/);
    const data = JSON.parse((await fence('report', '--json')).stdout);
    expect(data).toMatchObject({
      guards: [{ table: ledger.table, mode: 'audit', resource: 'invoice:{id}' }],
      unfenced: [{ count: 1 }, { count: 1 }],
    });
    expect(await fence('install', '--table', 'invoices', '--enforce')).toMatchObject({ code: 0 });
    await expect(ledger.exec('UPDATE invoices SET paid = 2')).rejects.toThrow(/To fix it/);
    expect(await fence('remove', '--table', 'invoices')).toMatchObject({ code: 0 });
    await ledger.exec('UPDATE invoices SET paid = 2');
    expect((await fence('report')).stdout).toBe('No table has a guard.\n');
    expect(await fence('install', '--table', 'nothing', '--audit')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('There is no table nothing'),
    });
    await ledger.close();
  });
});

describe('pawl fence', () => {
  it.each([
    [['watch', '--db', 'x.db'], /"watch" is no action; it is one of install, report, remove/],
    [['install', '--db', 'x.db', '--audit'], /--table is missing/],
    [['install', '--db', 'x.db', '--table', 't'], /either --audit/],
    [['install', '--db', 'x.db', '--table', 't', '--audit', '--enforce'], /either --audit/],
    [['report', '--db', 'x.db', '--table', 't'], /--table is not for report/],
    [['report'], /--db is missing/],
    [['report', '--db', 'mysql://root:secret@db/x'], /postgres:\/\//],
  ])('refuses %j', async (args, message) => {
    const result = await bench.run('fence', ...args);
    expect(result).toMatchObject({ code: 64, stderr: expect.stringMatching(message) });
    expect(result.stderr).not.toContain('secret');
  });

  it('makes no file that is not there', async () => {
    const path = bench.path('missing.db');
    expect(await bench.run('fence', 'report', '--db', path)).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('there is no such file'),
    });
  });

  it('says so where nobody listens, and where a file is no database', async () => {
    const away = await bench.run('fence', 'report', '--db', 'postgres://postgres@127.0.0.1:1/x');
    expect(away).toMatchObject({ code: 69, stderr: expect.stringContaining('ECONNREFUSED') });
    const none = await bench.run('fence', 'report', '--db', new URL(import.meta.url).pathname);
    expect(none, none.stderr).toMatchObject({ code: 69 });
  });
});
