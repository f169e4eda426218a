import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  guardReport,
  installGuard,
  removeGuard,
  type SqliteFence,
  type SqliteGuardOptions,
  sqliteFence,
} from '../../src/fences/sqlite.ts';

let folder: string;
let path: string;
let db: DatabaseSync;
let fence: SqliteFence;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-guard-'));
  path = join(folder, 'data.db');
  db = new DatabaseSync(path);
  db.exec(
    'PRAGMA journal_mode = WAL; CREATE TABLE invoices (id INTEGER PRIMARY KEY, paid INTEGER NOT NULL DEFAULT 0, note TEXT)',
  );
  db.exec('INSERT INTO invoices (id) VALUES (1), (2), (3)');
  fence = sqliteFence(db);
});
afterEach(() => {
  db.close();
  rmSync(folder, { recursive: true, force: true });
});

const guard = (options: Partial<SqliteGuardOptions> = {}) =>
  installGuard(db, { table: 'invoices', mode: 'enforce', ...options });
const paid = () => db.prepare('SELECT sum(paid) AS paid, count(*) AS n FROM invoices').get();
const noToken = /is fenced and refused this .* carries no token/;
const usage = expect.objectContaining({ code: 'PAWL_FENCE_USAGE' });

describe('the guard in SQLite, enforced', () => {
  it.each([
    ['INSERT', 'INSERT INTO invoices (id) VALUES (10)'],
    ['INSERT that skips conflicts', 'INSERT OR IGNORE INTO invoices (id) VALUES (10)'],
    ['INSERT that replaces', 'INSERT OR REPLACE INTO invoices (id) VALUES (1)'],
    ['upsert', 'INSERT INTO invoices (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET paid = 1'],
    ['UPDATE', 'UPDATE invoices SET paid = 1'],
    ['UPDATE that skips conflicts', 'UPDATE OR IGNORE invoices SET paid = 1'],
    ['DELETE', 'DELETE FROM invoices'],
  ])('S7: an %s without a token is refused, and reading is not', (_what, text) => {
    guard();
    expect(() => db.exec(text)).toThrow(noToken);
    expect(paid()).toEqual({ paid: 0, n: 3 });
    fence.transaction('r', 1n, () => db.exec(text));
  });

  it('the refusal says what was wrong and how to fix it', () => {
    guard({ resource: 'ledger' });
    expect(() => db.exec('DELETE FROM invoices')).toThrow(
      'invoices is fenced and refused this DELETE: its transaction carries no token where it needs that of "ledger". ' +
        "To fix it, acquire the lock and write in fence.transaction('ledger', lease, …) of pawl/fences/sqlite. " +
        'To let such writes pass and only record them: pawl fence install --table invoices --audit',
    );
  });

  it('S7: it holds for a program that knows nothing of Pawl', () => {
    guard();
    const script = `new (require('node:sqlite').DatabaseSync)(process.argv[1]).exec('UPDATE invoices SET paid = 9')`;
    const run = () =>
      execFileSync(process.execPath, ['-e', script, path], { encoding: 'utf8', stdio: 'pipe' });
    expect(run).toThrow(noToken);
    guard({ mode: 'audit' });
    run();
    expect(paid()).toEqual({ paid: 27, n: 3 });
  });

  it('S7: needs the token of its own resource where it has one', () => {
    guard({ resource: 'ledger' });
    expect(() => fence.transaction('other', 9n, () => db.exec('UPDATE invoices SET paid = 1'))).toThrow(
      /only the token of another resource/,
    );
    fence.transaction('ledger', 9n, () => db.exec('UPDATE invoices SET paid = 1'));
    expect(paid()).toEqual({ paid: 3, n: 3 });
  });

  it('S7: with a column in its resource each row needs its own token', () => {
    guard({ resource: 'invoice:{id}' });
    fence.transaction('invoice:1', 1n, () => db.exec('UPDATE invoices SET paid = 1 WHERE id = 1'));
    for (const text of [
      'UPDATE invoices SET paid = 7 WHERE id = 2',
      'UPDATE invoices SET paid = 7',
      'UPDATE invoices SET id = 11 WHERE id = 1',
      'UPDATE OR REPLACE invoices SET id = 1 WHERE id = 3',
      'DELETE FROM invoices WHERE id = 2',
      'INSERT INTO invoices (paid) VALUES (1)',
    ]) {
      expect(() => fence.transaction('invoice:1', 1n, () => db.exec(text))).toThrow(
        /token of another resource/,
      );
    }
    fence.transaction('invoice:4', 1n, () => db.exec('INSERT INTO invoices (paid) VALUES (1)'));
    expect(paid()).toEqual({ paid: 2, n: 4 });
  });

  it('S7: a token that was passed by a higher one in the same transaction is stale', () => {
    guard();
    expect(() =>
      fence.transaction('ledger', 1n, () => {
        fence.raise('ledger', 2n);
        db.exec('UPDATE invoices SET paid = 1');
      }),
    ).toThrow(/carries a stale token/);
  });

  it('S7: the token of one transaction is not that of the next', () => {
    guard();
    fence.transaction('ledger', 1n, () => db.exec('UPDATE invoices SET paid = 1'));
    expect(() => db.exec('UPDATE invoices SET paid = 2')).toThrow(noToken);
    fence.raise('ledger', 2n);
    expect(() => db.exec('UPDATE invoices SET paid = 2')).toThrow(noToken);
    expect(() =>
      fence.transaction('ledger', 2n, () => {
        throw new Error('no');
      }),
    ).toThrow('no');
    expect(() => db.exec('UPDATE invoices SET paid = 2')).toThrow(noToken);
  });

  it('S7: a transaction of one’s own is finished before the commit, and cannot be otherwise', () => {
    guard();
    db.exec('BEGIN IMMEDIATE');
    fence.check('ledger', 1n);
    db.exec('UPDATE invoices SET paid = 1');
    expect(() => db.exec('COMMIT')).toThrow(/FOREIGN KEY/);
    fence.finish();
    expect(() => db.exec('UPDATE invoices SET paid = 2')).toThrow(noToken);
    db.exec('COMMIT');
    expect(paid()).toEqual({ paid: 3, n: 3 });
    db.exec('PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE');
    expect(() => fence.check('ledger', 1n)).toThrow(usage);
    db.exec('ROLLBACK');
    fence.transaction('ledger', 1n, () => db.exec('UPDATE invoices SET paid = 2'));
    expect(() => db.exec('UPDATE invoices SET paid = 3')).toThrow(noToken);
  });

  it('S7: several resources are carried by one transaction', () => {
    guard({ resource: 'invoice:{id}' });
    fence.transaction('invoice:1', 1n, () => {
      fence.check('invoice:2', 1n);
      db.exec('UPDATE invoices SET paid = 1 WHERE id IN (1, 2)');
    });
    expect(paid()).toEqual({ paid: 2, n: 3 });
  });

  it('a fence that is older than the guard, and outlives it, never notices', () => {
    const other = new DatabaseSync(path);
    const write = () => fence.transaction('ledger', 1n, () => db.exec('UPDATE invoices SET paid = paid + 1'));
    write();
    installGuard(other, { table: 'invoices', mode: 'enforce' });
    write();
    removeGuard(other, { table: 'invoices' });
    write();
    db.exec('BEGIN');
    fence.check('ledger', 1n);
    db.exec('COMMIT');
    other.close();
    expect(paid()).toEqual({ paid: 9, n: 3 });
  });
});

describe('the guard in SQLite, in audit', () => {
  it('lists what was written unfenced: the kind of statement, the columns, the row, how often and why', () => {
    guard({ mode: 'audit', resource: 'ledger' });
    db.exec('UPDATE invoices SET paid = 5 WHERE id = 2');
    db.exec('UPDATE invoices SET paid = 6 WHERE id = 3');
    db.exec("UPDATE OR REPLACE invoices SET paid = 7, note = 'x' WHERE id = 1");
    db.exec('INSERT OR IGNORE INTO invoices (paid) VALUES (1)');
    fence.transaction('other', 1n, () => db.exec('DELETE FROM invoices WHERE id = 1'));
    fence.transaction('ledger', 1n, () => db.exec('DELETE FROM invoices WHERE id = 2'));
    const common = { table: 'invoices', application: undefined, role: undefined, reason: 'no token' };
    const { guards, unfenced } = guardReport(db);
    expect(guards).toEqual([{ table: 'invoices', mode: 'audit', resource: 'ledger' }]);
    expect(unfenced).toMatchObject([
      { ...common, operation: 'UPDATE', query: 'UPDATE paid', row: '3', count: 2 },
      {
        ...common,
        operation: 'DELETE',
        query: undefined,
        row: '1',
        count: 1,
        reason: 'token of another resource',
      },
      { ...common, operation: 'INSERT', query: undefined, row: '4', count: 1 },
      { ...common, operation: 'UPDATE', query: 'UPDATE paid, note', row: '1', count: 1 },
    ]);
    const [first] = unfenced;
    expect(first?.lastAt.getTime()).toBeGreaterThanOrEqual(first?.firstAt.getTime() ?? 0);
    expect(first?.firstAt.getTime()).toBeGreaterThan(1_600_000_000_000);
  });

  it('what the statement reports of itself stays as it was', () => {
    guard({ mode: 'audit' });
    const result = db.prepare('INSERT INTO invoices (paid) VALUES (1), (2)').run();
    expect(result).toMatchObject({ changes: 2, lastInsertRowid: 5 });
  });

  it('works for tables without rowid, and with names of any kind', () => {
    db.exec(`CREATE TABLE "a ""b'" ("k 1" TEXT, k2 INTEGER, v, PRIMARY KEY ("k 1", k2)) WITHOUT ROWID`);
    const table = `a "b'`;
    guard({ table, mode: 'audit', resource: "it's {k 1} */" });
    db.exec(`INSERT INTO "a ""b'" VALUES ('x', 1, 2); UPDATE "a ""b'" SET v = 3`);
    const report = guardReport(db);
    expect(report.guards).toEqual([{ table, mode: 'audit', resource: "it's {k 1} */" }]);
    expect(report.unfenced).toMatchObject([
      { operation: 'INSERT', row: '["x",1]' },
      { operation: 'UPDATE', row: '["x",1]', query: 'UPDATE v' },
    ]);
    guard({ table, mode: 'enforce', resource: "it's {k 1} */" });
    expect(() => db.exec(`DELETE FROM "a ""b'"`)).toThrow(/it's \{k 1\}/);
    fence.transaction("it's x */", 1n, () => db.exec(`DELETE FROM "a ""b'"`));
  });

  it.each([
    [
      'bytes for a key',
      'CREATE TABLE t (a BLOB, b, PRIMARY KEY (a, b)) WITHOUT ROWID',
      "x'01ff', 1",
      '["01FF",1]',
    ],
    ['a column called rowid that holds nothing', 'CREATE TABLE t (rowid TEXT, b)', 'NULL, 1', ''],
    ['no key of its own', 'CREATE TABLE t (a, b)', 'NULL, NULL', '1'],
  ])('an audit fails no write to a table with %s', (_what, create, values, row) => {
    db.exec(create);
    guard({ table: 't', mode: 'audit', resource: 't:{b}' });
    db.exec(`INSERT INTO t VALUES (${values}); UPDATE t SET b = 2; DELETE FROM t`);
    expect(db.prepare('SELECT count(*) AS n FROM t').get()).toEqual({ n: 0 });
    const { unfenced } = guardReport(db);
    expect(unfenced.map(({ operation }) => operation).sort()).toEqual(['DELETE', 'INSERT', 'UPDATE']);
    expect(unfenced.find(({ operation }) => operation === 'INSERT')?.row).toBe(row);
  });

  it('S7: the resource of a row is compared as a text, also where it is but a number', () => {
    guard({ resource: '{id}' });
    for (const other of ['01', '1.0', ' 1', '1e0']) {
      expect(() => fence.transaction(other, 1n, () => db.exec('DELETE FROM invoices WHERE id = 1'))).toThrow(
        /only the token of another resource/,
      );
    }
    fence.transaction('1', 1n, () => db.exec('DELETE FROM invoices WHERE id = 1'));
  });

  it('refuses a resource that a trigger cannot hold', () => {
    expect(() => guard({ resource: 'a\0b' })).toThrow(usage);
  });

  it('works on a connection that reads its numbers as bigints', () => {
    const big = new DatabaseSync(path, { readBigInts: true });
    const own = sqliteFence(big);
    big.exec('CREATE TABLE t (a INTEGER PRIMARY KEY, b) WITHOUT ROWID');
    installGuard(big, { table: 't', mode: 'audit' });
    big.exec('INSERT INTO t VALUES (1, 1)');
    expect(guardReport(big).unfenced).toMatchObject([{ row: '[1]', count: 1 }]);
    installGuard(big, { table: 't', mode: 'enforce' });
    big.exec('BEGIN IMMEDIATE');
    own.check('r', 2n);
    big.exec('INSERT INTO t VALUES (2, 2)');
    own.finish();
    big.exec('COMMIT');
    expect(() => own.raise('r', 1n)).toThrow(expect.objectContaining({ highest: 2n }));
    big.close();
  });
});

describe('to install a guard in SQLite', () => {
  it('changes the mode in one step, and removal leaves nothing of it', () => {
    const schema = () => db.prepare('SELECT name FROM sqlite_master ORDER BY name').all();
    const before = schema();
    guard({ mode: 'audit' });
    db.exec('UPDATE invoices SET paid = 1');
    guard({ mode: 'enforce' });
    expect(guardReport(db)).toMatchObject({
      guards: [{ mode: 'enforce', resource: undefined }],
      unfenced: [{ count: 3 }],
    });
    removeGuard(db, { table: 'invoices' });
    removeGuard(db, { table: 'invoices' });
    expect(guardReport(db)).toEqual({ guards: [], unfenced: [] });
    expect(schema()).toEqual(before);
    db.exec('UPDATE invoices SET paid = 2');
  });

  it('a guard goes with its table, whatever it is called', () => {
    guard();
    db.exec('ALTER TABLE invoices RENAME TO bills');
    expect(guardReport(db).guards).toMatchObject([{ table: 'bills' }]);
    expect(() => db.exec('UPDATE bills SET paid = 1')).toThrow(noToken);
    removeGuard(db, { table: 'bills' });
    db.exec('UPDATE bills SET paid = 1');
  });

  it.each([
    ['a table that is not there', { table: 'nothing' }],
    ['a table of SQLite', { table: 'sqlite_master' }],
    ['no name', { table: '' }],
    ['a column that is not there', { resource: 'invoice:{number}' }],
    ['a brace that is not closed', { resource: 'invoice:{id' }],
    ['no mode', { mode: 'watch' as 'audit' }],
    ['a table of the fence that is none', { fenceTable: 'x; y' }],
  ])('refuses %s', (_what, options) => {
    expect(() => guard(options)).toThrow(usage);
  });

  it('refuses to be part of another transaction', () => {
    db.exec('BEGIN');
    expect(() => guard()).toThrow(usage);
    db.exec('ROLLBACK');
  });
});
