import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { sqliteEngine } from '../../src/engines/sqlite/index.ts';
import { newDirectory, newPath, open, put, startChild } from './sqlite-fixture.ts';

/** A path with something at it, and what is said of it. */
const badPaths: [what: string, make: () => unknown, code: string, message: RegExp][] = [
  ['an empty path', () => '', 'PAWL_INVALID_ARGUMENT', /path must be the path of a file, but was ""/],
  ['no path', () => undefined, 'PAWL_INVALID_ARGUMENT', /but was undefined/],
  ['a path with a NUL', () => `${newPath()}\0x`, 'PAWL_INVALID_ARGUMENT', /path must be/],
  ['memory', () => ':memory:', 'PAWL_INVALID_ARGUMENT', /use memoryEngine/],
  ['a directory', () => newDirectory(), 'PAWL_STORE_UNUSABLE', /it is a directory/],
  ['a device', () => '/dev/null', 'PAWL_STORE_UNUSABLE', /no regular file/],
  [
    'a directory that is missing',
    () => join(newDirectory(), 'no', 'locks.db'),
    'PAWL_STORE_UNUSABLE',
    /no" does not exist; create it first/,
  ],
  [
    'a directory that is a file',
    () => join(fileWith('text'), 'locks.db'),
    'PAWL_STORE_UNUSABLE',
    /not a directory|cannot be looked at/,
  ],
  [
    'a text file',
    () => fileWith('Somebody wrote this by hand.\n'.repeat(100)),
    'PAWL_STORE_UNUSABLE',
    /not an SQLite database/,
  ],
  ['a short text file', () => fileWith('hi'), 'PAWL_STORE_UNUSABLE', /not an SQLite database/],
  [
    'a database of another',
    () => databaseWith('CREATE TABLE users (name)'),
    'PAWL_STORE_UNUSABLE',
    /another application/,
  ],
  [
    'a marked database of another',
    () => databaseWith('PRAGMA application_id = 7'),
    'PAWL_STORE_UNUSABLE',
    /another application/,
  ],
  [
    'an empty database with texts in UTF-16',
    () => databaseWith("PRAGMA encoding = 'UTF-16le'; CREATE TABLE gone (name); DROP TABLE gone"),
    'PAWL_STORE_UNUSABLE',
    /its encoding is UTF-16le and must be UTF-8; give Pawl a new file/,
  ],
];

describe('sqliteEngine refuses', () => {
  it.each(badPaths)('%s', async (_what, make, code, message) => {
    const path = make() as string;
    await expect(sqliteEngine({ path })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });

  it('leaves the database of another application as it was', async () => {
    const path = databaseWith('CREATE TABLE users (name)');
    const before = readFileSync(path);
    await expect(sqliteEngine({ path })).rejects.toThrow();
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it('a busy timeout that is no duration', async () => {
    const opening = sqliteEngine({ path: newPath(), busyTimeoutMs: Number.NaN });
    await expect(opening).rejects.toMatchObject({
      code: 'PAWL_INVALID_ARGUMENT',
      parameter: 'busyTimeoutMs',
    });
  });

  it('what this process may not write', async () => {
    const directory = newDirectory();
    chmodSync(directory, 0o755);
    const paths = ['read-only.db', 'secret.db', 'closed/locks.db', 'closed/new.db'].map((name) =>
      join(directory, name),
    );
    const [readOnly = '', secret = '', inClosed = ''] = paths;
    mkdirSync(join(directory, 'closed'));
    for (const path of [readOnly, secret, inClosed]) await (await sqliteEngine({ path })).close();
    chmodSync(readOnly, 0o444);
    chmodSync(secret, 0);
    chmodSync(join(directory, 'closed'), 0o555);

    const child = startChild('unprivileged', ...paths);
    await child.ended;
    chmodSync(join(directory, 'closed'), 0o755);
    expect(child.lines).toHaveLength(4);
    for (const line of child.lines) expect(line).toMatch(/^PAWL_STORE_UNUSABLE .* this process may not /);
  });

  it('a format that is newer', async () => {
    const path = newPath();
    await (await sqliteEngine({ path })).close();
    alter(path, 'PRAGMA user_version = 99');
    await expect(sqliteEngine({ path })).rejects.toMatchObject({
      code: 'PAWL_STORE_VERSION',
      message: expect.stringContaining('has format 99, but this version of Pawl reads up to 1'),
    });
  });

  it.each(['DROP TABLE entry', 'DROP TABLE meta', 'DELETE FROM meta', 'PRAGMA user_version = 0'])(
    'a database after %s',
    async (statement) => {
      const path = newPath();
      await (await sqliteEngine({ path })).close();
      alter(path, statement);
      await expect(sqliteEngine({ path })).rejects.toMatchObject({ code: 'PAWL_STORE_CORRUPT' });
    },
  );

  it('a truncated database', async () => {
    const path = newPath();
    const engine = await sqliteEngine({ path });
    for (let i = 0; i < 20; i++) await put(engine, `key/${i}`, 'x'.repeat(5000));
    await engine.close();
    truncateSync(path, 8192);
    const useIt = async () => {
      const again = await open(path);
      await again.list('', 100);
    };
    await expect(useIt()).rejects.toMatchObject({ code: 'PAWL_STORE_CORRUPT' });
  });
});

describe('sqliteEngine', () => {
  it('finds damage that comes up later', async () => {
    const path = newPath();
    const first = await sqliteEngine({ path });
    for (let i = 0; i < 20; i++) await put(first, `key/${i}`, 'x'.repeat(5000));
    await first.close();
    const engine = await open(path);
    const bytes = readFileSync(path);
    // The header and the schema stay; every page behind them is overwritten.
    writeFileSync(path, Buffer.concat([bytes.subarray(0, 4096), Buffer.alloc(bytes.length - 4096, 0x5a)]));
    await expect(engine.list('', 100)).rejects.toMatchObject({ code: 'PAWL_STORE_CORRUPT' });
    await expect(put(engine, 'key', 'value')).rejects.toMatchObject({ code: 'PAWL_STORE_CORRUPT' });
  });

  it('S2: stops when its file is replaced, rather than to share no locks with those who open the new one', async () => {
    const path = newPath();
    const engine = await open(path);
    await put(engine, 'key', 'value');
    for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix);
    const other = await open(path);
    await put(other, 'key', 'value of the other');
    await expect(put(engine, 'key', 'lost')).rejects.toMatchObject({ code: 'PAWL_STORE_UNUSABLE' });
    await expect(engine.list('', 1)).rejects.toMatchObject({ code: 'PAWL_STORE_UNUSABLE' });
  });

  it('takes an empty file for a new database', async () => {
    const engine = await open(fileWith(''));
    expect(await put(engine, 'key', 'value')).toBe(1n);
  });

  it('takes a relative path, also one that looks like a URI', async () => {
    const directory = newDirectory();
    const path = relative(process.cwd(), join(directory, 'file:locks.db?mode=memory'));
    await put(await open(path), 'key', 'value');
    expect(statSync(join(directory, 'file:locks.db?mode=memory')).isFile()).toBe(true);
  });

  it('keeps everything over close and open', async () => {
    const path = newPath();
    const first = await sqliteEngine({ path });
    const version = await put(first, 'key', 'value');
    await first.openSession('session', 60_000);
    await first.close();
    const second = await open(path);
    const { entries } = await second.read({ keys: ['key'], ranges: [] });
    expect(entries.get('key')).toEqual({ key: 'key', value: 'value', version });
    expect(await second.keepAlive(['session'])).toEqual(new Set(['session']));
    expect(await put(second, 'key', 'value')).toBeGreaterThan(version);
  });

  it('keeps a write-ahead log, which any number of processes can share', async () => {
    const path = newPath();
    await open(path);
    const db = new DatabaseSync(path);
    expect(db.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' });
    db.close();
  });
});

function fileWith(text: string): string {
  const path = newPath();
  writeFileSync(path, text);
  return path;
}

function databaseWith(sql: string): string {
  const path = newPath();
  alter(path, sql);
  return path;
}

function alter(path: string, sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}
