import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { httpResource, sqliteRunner, sqlRow } from '../../src/fences/conditional/index.ts';
import { memoryFence, nodeFence } from '../../src/fences/http/index.ts';
import {
  checkText,
  databaseError,
  identifier,
  literal,
  rowsOf,
  textValue,
} from '../../src/fences/postgres/client.ts';
import { installGuard, type PostgresClient, postgresFence } from '../../src/fences/postgres/index.ts';
import { type RedisClient, redisFence } from '../../src/fences/redis/index.ts';

const usage = expect.objectContaining({ code: 'PAWL_FENCE_USAGE' });

/** A server of `node:http` with this handler. @returns its URL. */
async function serve(handler: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('the fence for node:http', () => {
  const options = { store: memoryFence(), resource: () => 'x' };
  const put = (url: string, token: string) =>
    fetch(url, { method: 'PUT', headers: { 'Fencing-Token': token } });

  it('lets a handler without a promise answer, one after the other', async () => {
    const fenced = nodeFence({ ...options, store: memoryFence() }, (_request, response) => {
      response.end('done');
    });
    const url = await serve((request, response) => void fenced(request, response));
    for (const token of ['5', '5', '6']) expect(await (await put(url, token)).text()).toBe('done');
    expect((await put(url, '5')).status).toBe(409);
  });

  it('passes on what a handler throws that is none of its own, and keeps no turn for it', async () => {
    const seen: unknown[] = [];
    let failing = true;
    const fenced = nodeFence({ ...options, store: memoryFence() }, (_request, response) => {
      if (failing) throw new Error('of the handler');
      response.end('done');
    });
    const url = await serve((request, response) => {
      fenced(request, response).catch((error: Error) => {
        seen.push(error.message);
        response.statusCode = 500;
        response.end();
      });
    });
    expect((await put(url, '5')).status).toBe(500);
    failing = false;
    expect(await (await put(url, '5')).text()).toBe('done');
    expect(seen).toEqual(['of the handler']);
  });
});

describe('a conditional write', () => {
  it('reads a resource without a type, and sends none', async () => {
    const types: unknown[] = [];
    const url = await serve((request, response) => {
      types.push(request.headers['content-type']);
      response.setHeader('ETag', '"1"');
      response.end(request.method === 'GET' ? 'text' : undefined);
    });
    const resource = httpResource(url);
    const { value, version } = await resource.read();
    expect({ value, version }).toEqual({ value: { body: 'text', type: undefined }, version: '"1"' });
    expect(await resource.writeIf({ body: 'new', type: 'text/x-new' }, version)).toBe(true);
    expect(types).toEqual([undefined, 'text/x-new']);
  });

  it('of a row needs a version there, and finds one row', async () => {
    const db = new DatabaseSync(':memory:');
    db.exec(
      'CREATE TABLE t (id, version, note); INSERT INTO t VALUES (1, NULL, 0), (2, 1, 0), (3, 1, 0), (3, 1, 0)',
    );
    const row = (id: number, version?: string) =>
      sqlRow(sqliteRunner(db), { table: 't', key: { id }, version });
    await expect(row(1).read()).rejects.toThrow('has no "version"');
    await expect(row(2, 'counter').read()).rejects.toThrow('has no "counter"');
    await expect(row(3).read()).rejects.toThrow('fits several rows');
    await expect(row(4).read()).rejects.toThrow('There is no row');
    expect((await row(2).read()).version).toBe(1);
    expect(await row(2).writeIf({ note: 5 }, 2)).toBe(false);
    expect(await row(2).writeIf({ note: 5 }, 1)).toBe(true);
    expect(db.prepare('SELECT * FROM t WHERE id = 2').get()).toEqual({ id: 2, version: 2, note: 5 });
    for (const column of ['id', 'version', 'no name'])
      await expect(row(2).writeIf({ [column]: 5 }, 2)).rejects.toThrow(usage);
    db.close();
  });
});

describe('a row of SQL', () => {
  const runner = sqliteRunner(new DatabaseSync(':memory:'));
  const row = (part: Partial<Parameters<typeof sqlRow>[1]>) =>
    sqlRow(runner, { table: 't', key: { id: 1 }, ...part });

  it('is named by its table and key', () => {
    expect(row({ key: { a: 1, b: 'x' } }).name).toBe('t(1, x)');
    expect(row({ table: 'main.t', key: { _a1: 1 }, version: 'v_2' }).name).toBe('main.t(1)');
    expect(() => row({ table: 'a'.repeat(63), version: 'b'.repeat(63) })).not.toThrow();
  });

  it('takes plain names only, so that none of them is SQL', () => {
    const plain = (name: unknown) =>
      expect.objectContaining({
        code: 'PAWL_FENCE_USAGE',
        message: `"${name}" is no plain name of a table or column.`,
      });
    for (const name of ['', '1a', 'a b', 'a;', ' a', 'a-b', 'a'.repeat(64), 'x OR 1=1 --']) {
      for (const part of [{ table: name }, { version: name }, { key: { [name]: 1 } }])
        expect(() => row(part), JSON.stringify(part)).toThrow(plain(name));
    }
    for (const table of ['a.', '.a', 'a.b.c', 'a.1', 'a.b;', `a.${'b'.repeat(64)}`, 'a. b'])
      expect(() => row({ table })).toThrow(plain(table));
    expect(() => row({ version: 'a.b' })).toThrow(plain('a.b'));
    expect(() => row({ table: 5 as unknown as string })).toThrow(plain(5));
    expect(() => row({ key: {} })).toThrow('give one at least');
  });

  it('is found by all of its key', async () => {
    const db = new DatabaseSync(':memory:');
    db.exec('CREATE TABLE t (a, b, version, n); INSERT INTO t VALUES (1, 1, 1, 0), (1, 2, 1, 0)');
    const second = sqlRow(sqliteRunner(db), { table: 't', key: { a: 1, b: 2 } });
    expect((await second.read()).value).toMatchObject({ a: 1, b: 2 });
    expect(await second.writeIf({ n: 5 }, 1)).toBe(true);
    expect(db.prepare('SELECT b, n, version FROM t ORDER BY b').all()).toEqual([
      { b: 1, n: 0, version: 1 },
      { b: 2, n: 5, version: 2 },
    ]);
    await expect(second.writeIf({ version: 7 }, 2)).rejects.toThrow('of the key or the version of t(1, 2)');
    db.close();
  });
});

describe('a fence in Redis', () => {
  it.each([null, undefined, 'redis://', {}])('needs a client, and %j is none', (client) => {
    expect(() => redisFence(client as unknown as RedisClient)).toThrow(usage);
  });
});

describe('Postgres', () => {
  /** Whoever asks it anything has not checked first. */
  const untouched: PostgresClient = { query: (text) => Promise.reject(new Error(`was asked: ${text}`)) };

  it('is asked nothing where a setting is wrong', async () => {
    for (const lockTimeoutMs of [-1, 0.5, Number.NaN])
      await expect(installGuard(untouched, { table: 't', mode: 'audit', lockTimeoutMs })).rejects.toThrow(
        usage,
      );
    await expect(installGuard(untouched, { table: 't', mode: 'off' as 'audit' })).rejects.toThrow(usage);
    for (const schema of ['', 'Pawl', '1pawl', 'a'.repeat(41), 'a-b', 5 as unknown as string])
      expect(() => postgresFence({ schema })).toThrow(usage);
    expect(() => postgresFence({ schema: 'a'.repeat(40) })).not.toThrow();
  });

  it('gets texts that no setting of a connection reads otherwise', () => {
    expect(textValue("é'")).toBe("convert_from(decode('c3a927', 'hex'), 'UTF8')");
    expect(literal("it's")).toBe("'it''s'");
    expect(literal("a\\b'")).toBe(" E'a\\\\b'''");
    expect(identifier('a"b')).toBe('"a""b"');
    for (const name of ['a\0b', 'a\x1eb']) expect(() => checkText(name)).toThrow(usage);
    expect(() => checkText('a\x1fb')).not.toThrow();
  });

  it('answers as rows or as a result that has them, and its errors are found below a builder’s', () => {
    expect([rowsOf([1]), rowsOf({ rows: [2] })]).toEqual([[1], [2]]);
    const own = Object.assign(new Error('own'), { code: 'P0001', detail: '7' });
    expect(databaseError(own)).toEqual({ code: 'P0001', detail: '7' });
    expect(databaseError(new Error('wrapped', { cause: own }))).toEqual({ code: 'P0001', detail: '7' });
    expect(databaseError(Object.assign(new Error('x'), { code: 5, cause: own }))).toMatchObject({
      detail: '7',
    });
    expect(databaseError(Object.assign(new Error('x'), { code: '42P01' }))).toEqual({
      code: '42P01',
      detail: '',
    });
    for (const none of [new Error('x'), 'x', undefined]) expect(databaseError(none)).toBeUndefined();
  });
});
