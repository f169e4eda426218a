import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type SqliteFence, sqliteFence } from '../../src/fences/sqlite.ts';

let folder: string;
let path: string;
let db: DatabaseSync;
let fence: SqliteFence;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-fence-'));
  path = join(folder, 'data.db');
  db = new DatabaseSync(path);
  db.exec('PRAGMA journal_mode = WAL; CREATE TABLE account (value INTEGER); INSERT INTO account VALUES (0)');
  fence = sqliteFence(db);
});
afterEach(() => {
  db.close();
  rmSync(folder, { recursive: true, force: true });
});

const set = (on: DatabaseSync, value: number) => on.prepare('UPDATE account SET value = ?').run(value);
const get = (on: DatabaseSync) => on.prepare('SELECT value FROM account').get()?.value;
const stale = expect.objectContaining({ code: 'PAWL_STALE_TOKEN' });
const usage = expect.objectContaining({ code: 'PAWL_FENCE_USAGE' });

describe('the fence in SQLite', () => {
  it('S7: a stale write is rolled back with whatever its transaction did', () => {
    fence.transaction('account', 2n, () => set(db, 100));
    db.exec('BEGIN IMMEDIATE');
    set(db, 200);
    expect(() => fence.check('account', 1n)).toThrow(stale);
    db.exec('ROLLBACK');
    expect(() => fence.transaction('account', 1n, () => set(db, 200))).toThrow(stale);
    expect(get(db)).toBe(100);
  });

  it('S7: a check outside a transaction is refused, since it protects nothing', () => {
    expect(() => fence.check('account', 1n)).toThrow(usage);
  });

  it('S7: other connections see what was honoured, also when the file is opened again', () => {
    fence.raise('account', 5n);
    const other = new DatabaseSync(path);
    const otherFence = sqliteFence(other);
    expect(() => otherFence.raise('account', 4n)).toThrow(stale);
    otherFence.transaction('account', 6n, () => set(other, 1));
    other.close();
    expect(() => fence.transaction('account', 5n, () => set(db, 2))).toThrow(stale);
    db.close();
    db = new DatabaseSync(path);
    expect(() => sqliteFence(db).raise('account', 5n)).toThrow(stale);
    expect(get(db)).toBe(1);
  });

  it('S7: check and effect are one step: no other connection can come between', () => {
    const other = new DatabaseSync(path, { timeout: 0 });
    const otherFence = sqliteFence(other);
    fence.transaction('account', 1n, () => {
      expect(() => otherFence.raise('account', 2n)).toThrow(/locked/);
      set(db, 1);
    });
    otherFence.raise('account', 2n);
    expect(() => fence.transaction('account', 1n, () => set(db, 3))).toThrow(stale);
    expect(get(db)).toBe(1);
    other.close();
  });

  it('S7: check and effect are one step also where the token stood there already, and the effect is in an attached database', () => {
    const open = () => {
      const own = new DatabaseSync(path, { timeout: 0 });
      own.exec(`PRAGMA journal_mode = WAL; ATTACH '${path}-other' AS other; PRAGMA other.journal_mode = WAL`);
      return own;
    };
    const [first, second] = [open(), open()];
    first.exec('CREATE TABLE other.log (token INTEGER)');
    const [late, current] = [sqliteFence(first), sqliteFence(second)];
    late.raise('log', 1n);
    first.exec('BEGIN');
    late.check('log', 1n);
    expect(() => current.raise('log', 2n)).toThrow(/locked/);
    first.exec('INSERT INTO other.log VALUES (1); COMMIT');
    current.transaction('log', 2n, () => second.exec('INSERT INTO other.log VALUES (2)'));
    first.exec('BEGIN');
    expect(() => late.check('log', 1n)).toThrow(stale);
    first.exec('ROLLBACK');
    for (const each of [first, second]) each.close();
  });

  it('S8: a raise inside a transaction is undone with it', () => {
    db.exec('BEGIN');
    fence.raise('account', 9n);
    db.exec('ROLLBACK');
    fence.raise('account', 3n);
    expect(() => fence.raise('account', 2n)).toThrow(expect.objectContaining({ highest: 3n }));
  });

  it('rolls back an effect that throws, and one that returns a promise', () => {
    expect(() =>
      fence.transaction('account', 1n, () => {
        set(db, 7);
        throw new Error('no');
      }),
    ).toThrow('no');
    expect(() =>
      fence.transaction('account', 1n, async () => {
        set(db, 8);
      }),
    ).toThrow(usage);
    expect(get(db)).toBe(0);
    expect(fence.transaction('account', 1n, () => 'value')).toBe('value');
  });

  it('resources are fenced one by one, whatever their names', () => {
    const names = ['a', 'A', "o'clock", 'a"; DROP TABLE pawl_fence; --', '😀', '\u0000'];
    for (const [i, name] of names.entries()) fence.raise(name, BigInt(i + 1));
    for (const [i, name] of names.entries()) {
      expect(() => fence.raise(name, BigInt(i))).toThrow();
      fence.raise(name, BigInt(i + 1));
    }
  });

  it.each(['', 'a b', 'x; DROP TABLE account', 'a'.repeat(64), 5])('refuses %j as its table', (table) => {
    expect(() => sqliteFence(db, { table: table as string })).toThrow(usage);
  });

  it('S7: a column fence does the same for writes of one statement', () => {
    db.exec('CREATE TABLE invoice (id INTEGER PRIMARY KEY, paid INTEGER, token INTEGER NOT NULL DEFAULT 0)');
    db.exec('INSERT INTO invoice VALUES (42, 0, 0)');
    const pay = db.prepare('UPDATE invoice SET paid = ?, token = ? WHERE id = ? AND token <= ?');
    expect(pay.run(1, 2n, 42, 2n).changes).toBe(1);
    expect(pay.run(0, 1n, 42, 1n).changes).toBe(0);
    expect(db.prepare('SELECT paid FROM invoice').get()?.paid).toBe(1);
  });
});
