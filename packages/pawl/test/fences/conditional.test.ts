import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  httpResource,
  mysqlRunner,
  pgRunner,
  type SqlRunner,
  sqliteRunner,
  sqlRow,
  updateIfUnchanged,
  type Versioned,
} from '../../src/fences/conditional/index.ts';
import { PostgresServer, postgresPrograms } from '../engines/postgres-server.ts';
import { haveMariadb, MariadbServer } from './mariadb-server.ts';

const CREATE =
  'CREATE TABLE account (id INTEGER PRIMARY KEY, owner VARCHAR(20), balance INTEGER, version BIGINT NOT NULL)';
const usage = expect.objectContaining({ code: 'PAWL_FENCE_USAGE' });
const closers: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

const programs = postgresPrograms();
const databases: [string, boolean, () => Promise<SqlRunner>][] = [
  [
    'SQLite',
    true,
    async () => {
      const db = new DatabaseSync(':memory:');
      db.exec(CREATE);
      return sqliteRunner(db);
    },
  ],
  [
    'Postgres',
    programs !== undefined,
    async () => {
      const server = new PostgresServer(programs ?? '');
      closers.push(() => server.stop());
      await server.start();
      const pool = new pg.Pool({
        port: server.port,
        host: '127.0.0.1',
        user: 'postgres',
        database: 'postgres',
      });
      closers.push(() => pool.end());
      await pool.query(CREATE);
      return pgRunner(pool);
    },
  ],
  [
    'MariaDB',
    haveMariadb(),
    async () => {
      const server = new MariadbServer();
      closers.push(() => server.stop());
      await server.start();
      const pool = mysql.createPool({ uri: server.address });
      closers.push(() => pool.end());
      await pool.query(CREATE);
      return mysqlRunner(pool);
    },
  ],
];

describe.each(databases)('a row of %s with a version', (_database, available, start) => {
  let sql: SqlRunner;
  beforeAll(async () => {
    if (available) sql = await start();
  }, 90_000);
  beforeEach(async (context) => {
    if (!available) return context.skip();
    await sql.change('DELETE FROM account', []);
    await sql.change('INSERT INTO account (id, owner, balance, version) VALUES (?, ?, ?, ?)', [
      1,
      'ann',
      100,
      1,
    ]);
  });
  const row = () => sqlRow<{ balance: number; owner: string }>(sql, { table: 'account', key: { id: 1 } });
  const add =
    (amount: number) =>
    ({ balance }: { balance: number }) => ({ balance: balance + amount });

  it('is written on condition that it is unchanged, and counts its changes', async () => {
    expect(await updateIfUnchanged(row(), add(5))).toMatchObject({
      value: { balance: 100 },
      change: { balance: 105 },
      attempts: 1,
    });
    const { value, version } = await row().read();
    expect(value).toMatchObject({ id: 1, owner: 'ann', balance: 105 });
    expect(Number(version)).toBe(2);
  });

  it('is read again where another came between', async () => {
    let calls = 0;
    const { attempts } = await updateIfUnchanged(row(), async ({ balance }) => {
      calls += 1;
      if (calls < 3) await updateIfUnchanged(row(), add(10));
      return { balance: balance + 1, owner: 'bob' };
    });
    expect(attempts).toBe(3);
    expect((await row().read()).value).toMatchObject({ balance: 121, owner: 'bob' });
  });

  it('loses no update, whoever meets', async () => {
    const amounts = Array.from({ length: 12 }, (_, i) => i + 1);
    const options = { attempts: 200, wait };
    await Promise.all(amounts.map((amount) => updateIfUnchanged(row(), add(amount), options)));
    expect((await row().read()).value.balance).toBe(100 + 78);
  });

  it('is said not to be there, rather than not written', async () => {
    const none = sqlRow(sql, { table: 'account', key: { id: 2 } });
    await expect(updateIfUnchanged(none, () => ({ balance: 1 }))).rejects.toThrow(usage);
    const many = sqlRow(sql, { table: 'account', key: { owner: 'ann' } });
    await sql.change('INSERT INTO account (id, owner, balance, version) VALUES (?, ?, ?, ?)', [
      3,
      'ann',
      1,
      1,
    ]);
    await expect(updateIfUnchanged(many, () => ({ balance: 1 }))).rejects.toThrow(usage);
  });

  it('writes neither its key nor its version, and takes no SQL for a name', async () => {
    for (const change of [{ id: 2 }, { version: 9 }, { 'balance = 0 --': 1 }]) {
      await expect(updateIfUnchanged(row(), () => change)).rejects.toThrow(usage);
    }
    for (const wrong of [
      { table: 'account; DROP TABLE account', key: { id: 1 } },
      { table: 'account', key: { 'id = id OR id': 1 } },
      { table: 'account', key: { id: 1 }, version: 'version + 1' },
      { table: 'account', key: {} },
    ]) {
      expect(() => sqlRow(sql, wrong)).toThrow(usage);
    }
  });
});

describe('a resource of HTTP with an ETag', () => {
  let server: Server;
  let url: string;
  let stored: { body: string; type: string } | undefined;
  let answer: number | undefined;
  let weak = false;

  beforeAll(async () => {
    server = createServer((request, response) => {
      void serve(request).then(([status, headers, body]) => response.writeHead(status, headers).end(body));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => server.close());
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/counter`;
  });
  beforeEach(() => {
    stored = undefined;
    answer = undefined;
    weak = false;
  });

  const etag = () => stored && `"${createHash('sha256').update(stored.body).digest('hex').slice(0, 16)}"`;

  /** What RFC 9110 asks of a server for these two methods and conditions. */
  async function serve(request: IncomingMessage): Promise<[number, Record<string, string>, string]> {
    let body = '';
    for await (const chunk of request) body += chunk;
    if (answer !== undefined) return [answer, {}, ''];
    const current = etag();
    if (request.method === 'GET') {
      if (stored === undefined || current === undefined) return [404, {}, 'none'];
      return [200, { ETag: weak ? `W/${current}` : current, 'Content-Type': stored.type }, stored.body];
    }
    const { 'if-match': match, 'if-none-match': noneMatch } = request.headers;
    if (match !== undefined && match !== current) return [412, {}, ''];
    if (noneMatch === '*' && current !== undefined) return [412, {}, ''];
    stored = { body, type: request.headers['content-type'] ?? '' };
    return [204, {}, ''];
  }

  const count = (counter: ReturnType<typeof httpResource>) =>
    updateIfUnchanged(counter, (now) => ({ body: `${Number(now?.body ?? 0) + 1}`, type: 'text/x-count' }), {
      attempts: 100,
    });

  it('is made where it is not there, and by one only', async () => {
    const first = await httpResource(url).read();
    expect(first.value).toBeUndefined();
    expect(await httpResource(url).writeIf({ body: '1' }, first.version)).toBe(true);
    expect(await httpResource(url).writeIf({ body: '2' }, first.version)).toBe(false);
    expect(stored?.body).toBe('1');
  });

  it('loses no update, whoever meets', async () => {
    await Promise.all(Array.from({ length: 10 }, () => count(httpResource(url))));
    expect(stored).toEqual({ body: '10', type: 'text/x-count' });
  });

  it('gives up where the server gives no strong ETag, or another answer', async () => {
    await count(httpResource(url));
    weak = true;
    await expect(count(httpResource(url))).rejects.toThrow(usage);
    answer = 200;
    await expect(count(httpResource(url))).rejects.toThrow(usage);
    answer = 403;
    await expect(count(httpResource(url))).rejects.toMatchObject({
      code: 'PAWL_UNEXPECTED_RESPONSE',
      status: 403,
      outcome: 'definite',
    });
    answer = 500;
    await expect(httpResource(url).writeIf({ body: 'x' }, '"1"')).rejects.toMatchObject({
      status: 500,
      outcome: 'indefinite',
    });
  });
});

describe('updateIfUnchanged', () => {
  const never: Versioned<number> = {
    name: 'x',
    read: async () => ({ value: 1, version: 1 }),
    writeIf: async () => false,
  };

  it('ends after as many attempts as it was allowed, with waits that grow and are partly random', async () => {
    const waits: number[] = [];
    const options = {
      attempts: 4,
      backoffMs: 8,
      random: () => 0.5,
      wait: async (ms: number) => void waits.push(ms),
    };
    await expect(updateIfUnchanged(never, (value) => value, options)).rejects.toMatchObject({
      code: 'PAWL_CONTENTION',
      resource: 'x',
      attempts: 4,
      retryable: true,
      outcome: 'definite',
    });
    expect(waits).toEqual([4, 8, 16]);
  });

  it('writes nothing where nothing is wanted, and lets errors through without another attempt', async () => {
    expect(await updateIfUnchanged(never, () => undefined)).toMatchObject({ change: undefined, attempts: 1 });
    let reads = 0;
    const broken: Versioned<number> = {
      ...never,
      read: async () => {
        reads += 1;
        throw new Error('no connection');
      },
    };
    await expect(updateIfUnchanged(broken, (value) => value)).rejects.toThrow('no connection');
    expect(reads).toBe(1);
  });

  it('ends with its signal', async () => {
    const controller = new AbortController();
    const decide = () => {
      controller.abort(new Error('enough'));
      return 1;
    };
    await expect(updateIfUnchanged(never, decide, { signal: controller.signal })).rejects.toThrow('enough');
  });

  it.each([0, 1.5, Number.NaN])('refuses %d attempts', async (attempts) => {
    await expect(updateIfUnchanged(never, () => 1, { attempts })).rejects.toThrow(usage);
  });

  it('whatever comes between, no change is lost and none is made twice', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.boolean(), { maxLength: 5 }), { minLength: 1, maxLength: 5 }),
        async (writers) => {
          let value = 0;
          let version = 0;
          const pause = (waits: boolean | undefined) =>
            waits ? new Promise<void>((r) => setImmediate(r)) : undefined;
          const done = await Promise.all(
            writers.map((pauses) => {
              const left = [...pauses];
              const shared: Versioned<number, number, number> = {
                read: async () => {
                  const read = { value, version };
                  await pause(left.pop());
                  return read;
                },
                writeIf: async (change, seen) => {
                  await pause(left.pop());
                  if (seen !== version) return false;
                  value = change;
                  version += 1;
                  return true;
                },
              };
              return updateIfUnchanged(shared, (now) => now + 1, { attempts: 50 });
            }),
          );
          expect(value).toBe(writers.length);
          expect(done.map(({ change }) => change).sort()).toEqual(writers.map((_, i) => i + 1));
        },
      ),
      { numRuns: 100 },
    );
  });
});
