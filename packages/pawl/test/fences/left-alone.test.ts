import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fileFence } from '../../src/fences/files/index.ts';
import { guardReport, installGuard, removeGuard, sqliteFence } from '../../src/fences/sqlite.ts';

/** What a fence does not touch: others' files, others' triggers, what failed half-way. */

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-left-alone-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the fence around a file', () => {
  it('removes what dead processes left of this file, and nothing of the living or of other files', async () => {
    const path = join(folder, 'app.conf');
    const fence = fileFence(path);
    await fence.write(1n, 'one');
    // A write that waits for its data shows the name under which it is kept meanwhile.
    const gate = Promise.withResolvers<void>();
    async function* slow() {
      yield 'two';
      await gate.promise;
    }
    const writing = fence.write(2n, slow());
    const kept = () => readdirSync(folder).filter((name) => name.endsWith('.pawl-new'));
    await expect.poll(kept).toHaveLength(1);
    const [own = ''] = kept();
    const dead = execFileSync(process.execPath, ['-p', 'process.pid'], { encoding: 'utf8' }).trim();
    const ofDead = own.replace(`.${process.pid}.`, `.${dead}.`);
    const others = [`${ofDead}.txt`, ofDead.replace('app.conf', 'other.conf')];
    for (const name of [ofDead, ...others]) writeFileSync(join(folder, name), 'left');
    await fence.write(3n, 'three');
    const after = readdirSync(folder);
    expect(after).not.toContain(ofDead);
    expect(after).toEqual(expect.arrayContaining([own, ...others]));
    gate.resolve();
    await expect(writing).rejects.toMatchObject({ code: 'PAWL_STALE_TOKEN' });
    expect(readFileSync(path, 'utf8')).toBe('three');
    expect(readdirSync(folder)).not.toContain(own);
  });

  it('an empty file of state has honoured nothing yet', async () => {
    const path = join(folder, 'app.conf');
    writeFileSync(`${path}.pawl-fence`, '');
    const fence = fileFence(path);
    expect(await fence.highest()).toBeUndefined();
    await fence.raise(4n);
    expect(await fence.highest()).toBe(4n);
  });

  it('fails where the path leads nowhere, is a folder, or goes in circles, and makes nothing', async () => {
    writeFileSync(join(folder, 'file'), '');
    symlinkSync(join(folder, 'circle'), join(folder, 'circle'));
    for (const [name, code] of [
      ['file/inner', 'ENOTDIR'],
      ['circle', 'ELOOP'],
      ['missing/inner', 'ENOENT'],
    ] as const)
      await expect(fileFence(join(folder, name)).write(1n, 'x')).rejects.toMatchObject({ code });
    mkdirSync(join(folder, 'sub'));
    await expect(fileFence(join(folder, 'sub')).write(1n, 'x')).rejects.toMatchObject({
      code: 'PAWL_FENCE_USAGE',
    });
    expect(readdirSync(join(folder, 'sub'))).toEqual([]);
  });
});

describe('the fence in SQLite', () => {
  it('S7: an effect that ended the transaction itself and failed is told its own error', () => {
    const db = new DatabaseSync(':memory:');
    db.exec('CREATE TABLE t (v)');
    const effect = () => {
      db.exec("INSERT INTO t VALUES ('x')");
      db.exec('ROLLBACK');
      throw new Error('of the effect');
    };
    expect(() => sqliteFence(db).transaction('t', 5n, effect)).toThrow('of the effect');
    expect(db.prepare('SELECT count(*) AS n FROM t').get()).toEqual({ n: 0 });
    // Nothing is left open, and the token that was rolled back was not honoured.
    expect(sqliteFence(db).transaction('t', 4n, () => 'done')).toBe('done');
    db.close();
  });
});

describe('the guard in SQLite', () => {
  it('goes from one table, and leaves the other’s and the triggers of others', () => {
    const db = new DatabaseSync(':memory:');
    db.exec('CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (id INTEGER PRIMARY KEY)');
    db.exec(
      'CREATE TABLE log (id); CREATE TRIGGER mine AFTER INSERT ON a BEGIN INSERT INTO log VALUES (NEW.id); END',
    );
    for (const table of ['a', 'b']) installGuard(db, { table, mode: 'enforce', resource: `the ${table}` });
    const guards = () => guardReport(db).guards;
    expect(guards()).toEqual([
      { table: 'a', mode: 'enforce', resource: 'the a' },
      { table: 'b', mode: 'enforce', resource: 'the b' },
    ]);
    removeGuard(db, { table: 'a' });
    expect(guards().map(({ table }) => table)).toEqual(['b']);
    db.exec('INSERT INTO a VALUES (1)');
    expect(db.prepare('SELECT id FROM log').all()).toEqual([{ id: 1 }]);
    expect(() => db.exec('INSERT INTO b VALUES (1)')).toThrow(/carries no token/);
    removeGuard(db, { table: 'b' });
    expect(guards()).toEqual([]);
    const left = db.prepare("SELECT name FROM sqlite_master WHERE name LIKE 'pawl%' ORDER BY 1").all();
    expect(left).toEqual([{ name: 'pawl_fence' }]);
    db.close();
  });

  it('whose triggers cannot all be made leaves none of them, and what was there as it was', () => {
    const table = 'CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (id INTEGER PRIMARY KEY)';
    const names = (db: DatabaseSync) =>
      db.prepare("SELECT name FROM sqlite_master WHERE type <> 'index' ORDER BY name").all();
    const sample = new DatabaseSync(':memory:');
    sample.exec(table);
    installGuard(sample, { table: 'a', mode: 'enforce' });
    const made = sample.prepare("SELECT name FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid").all();
    const taken = String(made.at(-1)?.name);
    sample.close();

    const db = new DatabaseSync(':memory:');
    db.exec(`${table}; CREATE TRIGGER "${taken}" AFTER DELETE ON b BEGIN SELECT 1; END`);
    const before = names(db);
    expect(() => installGuard(db, { table: 'a', mode: 'enforce' })).toThrow(/already exists/);
    expect(names(db)).toEqual(before);
    db.exec('BEGIN; INSERT INTO a VALUES (1); COMMIT');
    db.close();
  });

  it('that cannot be installed leaves nothing of itself, and the error says why', () => {
    const db = new DatabaseSync(':memory:');
    db.exec('CREATE TABLE a (id INTEGER PRIMARY KEY); PRAGMA query_only = 1');
    expect(() => installGuard(db, { table: 'a', mode: 'audit' })).toThrow(/readonly/);
    db.exec('PRAGMA query_only = 0; BEGIN; COMMIT');
    expect(db.prepare("SELECT name FROM sqlite_master WHERE type <> 'index'").all()).toEqual([{ name: 'a' }]);
    db.exec('BEGIN');
    expect(() => installGuard(db, { table: 'a', mode: 'audit' })).toThrow(
      expect.objectContaining({ code: 'PAWL_FENCE_USAGE' }),
    );
    db.exec('ROLLBACK');
    db.close();
  });
});
