import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { httpResource, sqliteRunner, sqlRow, updateIfUnchanged } from '../../src/fences/conditional/index.ts';

/** A row in SQLite, and who comes between its reads and writes. */
function row(meddlings = 0) {
  const db = new DatabaseSync(':memory:');
  onTestFinished(() => db.close());
  db.exec('CREATE TABLE stock (id INTEGER, version INTEGER, n INTEGER); INSERT INTO stock VALUES (1, 1, 10)');
  const present = () => db.prepare('SELECT version, n FROM stock').get();
  let left = meddlings;
  const take = ({ n }: { n: number }) => {
    if (left > 0) db.exec('UPDATE stock SET n = n - 1, version = version + 1');
    left -= 1;
    return { n: n - 5 };
  };
  const versioned = sqlRow<{ n: number }>(sqliteRunner(db), { table: 'stock', key: { id: 1 } });
  return { versioned, take, present };
}

describe('an update on condition that nobody came between', () => {
  it('is decided anew on what others left, and tells what it read and wrote', async () => {
    const { versioned, take, present } = row(2);
    expect(await updateIfUnchanged(versioned, take)).toEqual({
      value: { id: 1, version: 3, n: 8 },
      change: { n: 3 },
      attempts: 3,
    });
    expect(present()).toEqual({ version: 4, n: 3 });
  });

  it('writes nothing where nothing is wanted', async () => {
    const { versioned, present } = row();
    const decided = await updateIfUnchanged(versioned, () => undefined);
    expect(decided).toMatchObject({ change: undefined, attempts: 1, value: { n: 10 } });
    expect(present()).toEqual({ version: 1, n: 10 });
  });

  it('gives up after its attempts, with nothing written by it', async () => {
    const { versioned, take, present } = row(99);
    await expect(updateIfUnchanged(versioned, take, { attempts: 3 })).rejects.toMatchObject({
      code: 'PAWL_CONTENTION',
      resource: 'stock(1)',
      attempts: 3,
    });
    expect(present()).toEqual({ version: 4, n: 7 });
    const always = { read: async () => ({ value: 1, version: 1 }), writeIf: async () => false };
    await expect(updateIfUnchanged(always, () => 2)).rejects.toMatchObject({
      resource: 'the resource',
      attempts: 10,
    });
  });

  it('waits longer each time, up to 5 s, and for a random part of that', async () => {
    const always = { read: async () => ({ value: 1, version: 1 }), writeIf: async () => false };
    const waits = async (options: { backoffMs?: number; random?: () => number }) => {
      const waited: number[] = [];
      const wait = async (ms: number) => void waited.push(ms);
      await updateIfUnchanged(always, () => 2, { attempts: 5, wait, ...options }).catch(() => {});
      return waited;
    };
    expect(await waits({ random: () => 0.5 })).toEqual([5, 10, 20, 40]);
    expect(await waits({ random: () => 1, backoffMs: 1500 })).toEqual([1500, 3000, 5000, 5000]);
    expect(await waits({ backoffMs: 0 })).toEqual([0, 0, 0, 0]);
  });

  it('ends between attempts where its signal says so', async () => {
    const { versioned, take } = row(99);
    const abort = new AbortController();
    const wait = async () => abort.abort(new Error('enough'));
    await expect(updateIfUnchanged(versioned, take, { signal: abort.signal, wait })).rejects.toThrow(
      'enough',
    );
  });

  it.each([{ attempts: 0 }, { attempts: 1.5 }, { backoffMs: -1 }, { backoffMs: Number.NaN }])(
    'refuses %j before it reads',
    async (options) => {
      const versioned = { read: () => Promise.reject(new Error('was read')), writeIf: async () => true };
      await expect(updateIfUnchanged(versioned, () => 1, options)).rejects.toMatchObject({
        code: 'PAWL_FENCE_USAGE',
        message: expect.stringContaining('attempts'),
      });
    },
  );
});

describe('a resource behind HTTP', () => {
  /** A server that keeps one representation, and may answer as told instead. */
  async function server() {
    const state = {
      body: undefined as string | undefined,
      etag: 0,
      answer: undefined as number | undefined,
      weak: '',
    };
    const asked: (string | undefined)[] = [];
    const types: (string | undefined)[] = [];
    const listening = createServer(async (request, response) => {
      let body = '';
      for await (const piece of request) body += piece;
      const { 'if-match': match, 'if-none-match': none, 'x-own': own } = request.headers;
      types.push(request.headers['content-type']);
      asked.push(`${request.method} ${match ?? none ?? ''} ${own ?? ''}`.trim());
      const status =
        state.answer ??
        (request.method === 'GET'
          ? state.body === undefined
            ? 404
            : 200
          : (none === '*' ? state.body === undefined : match === `"${state.etag}"`)
            ? 204
            : 412);
      if (status === 204) Object.assign(state, { body, etag: state.etag + 1 });
      if (state.weak !== 'none') response.setHeader('ETag', `${state.weak}"${state.etag}"`);
      response
        .writeHead(status, { 'Content-Type': 'text/x-own' })
        .end(status === 200 ? state.body : undefined);
    });
    await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      listening.closeAllConnections();
      listening.close();
    });
    const url = `http://127.0.0.1:${(listening.address() as AddressInfo).port}/it`;
    return { state, asked, types, url, resource: httpResource(url, { headers: { 'X-Own': 'me' } }) };
  }

  it('is not there where the server says so, and what then is written tells no type unless it has one', async () => {
    const { resource, state, types } = await server();
    expect(await resource.read()).toEqual({ value: undefined, version: undefined });
    await resource.writeIf({ body: 'x' }, undefined);
    await resource.writeIf({ body: 'y', type: 'text/x-new' }, '"1"');
    expect(types).toEqual([undefined, 'text/plain;charset=UTF-8', 'text/x-new']);
    state.answer = 500;
    await expect(resource.writeIf({ body: 'z' }, '"2"')).rejects.toThrow('PUT of');
    await expect(resource.read()).rejects.toThrow('GET of');
  });

  it('is made where it is not there, then written on condition of its ETag', async () => {
    const { resource, asked, state, url } = await server();
    expect(resource.name).toBe(url);
    const append = (present: { body: string } | undefined) => ({ body: `${present?.body ?? ''}+` });
    for (const attempts of [1, 1])
      expect(await updateIfUnchanged(resource, append, { attempts })).toMatchObject({ attempts });
    expect(state.body).toBe('++');
    expect(asked).toEqual(['GET  me', 'PUT * me', 'GET  me', 'PUT "1" me']);
    expect(await resource.read()).toEqual({ value: { body: '++', type: 'text/x-own' }, version: '"2"' });
    expect(await httpResource(`${url}/`).read()).toMatchObject({ version: '"2"' });
    expect(await resource.writeIf({ body: 'late' }, '"1"')).toBe(false);
    expect(await resource.writeIf({ body: 'late' }, undefined)).toBe(false);
    expect(state.body).toBe('++');
  });

  it('needs a strong ETag, and answers that it can go on from', async () => {
    const { resource, state, url } = await server();
    Object.assign(state, { body: 'x', weak: 'W/' });
    await expect(resource.read()).rejects.toMatchObject({
      code: 'PAWL_FENCE_USAGE',
      message: expect.stringContaining('only the weak ETag W/"0"'),
    });
    state.weak = 'none';
    await expect(resource.read()).rejects.toThrow('no ETag');
    for (const [answer, reading, writing] of [
      [403, 'definite', 'definite'],
      [503, 'definite', 'indefinite'],
    ] as const) {
      state.answer = answer;
      const expected = { code: 'PAWL_UNEXPECTED_RESPONSE', status: answer, resource: url };
      await expect(resource.read()).rejects.toMatchObject({ ...expected, outcome: reading });
      await expect(resource.writeIf({ body: '' }, '"0"')).rejects.toMatchObject({
        ...expected,
        outcome: writing,
      });
    }
  });
});
