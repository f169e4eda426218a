import { createSecretKey, randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import {
  bearerOf,
  expressFence,
  type FenceStore,
  fencedFetch,
  memoryFence,
  nodeFence,
  problemOf,
} from '../../src/fences/http/index.ts';
import { signSequencer } from '../../src/fences/sequencer.ts';
import { sqliteFence } from '../../src/fences/sqlite.ts';
import { FRAMEWORKS, type Running, type Service } from './http-servers.ts';

let running: Running | undefined;
afterEach(async () => {
  await running?.close();
  running = undefined;
});

const stores: [string, () => FenceStore][] = [
  ['in memory', () => memoryFence()],
  ['in SQLite', () => sqliteFence(new DatabaseSync(':memory:'))],
];

describe.each(FRAMEWORKS)('the fence for %s', (_framework, start) => {
  const values = new Map<string, string>();
  const serve = async (service: Partial<Service> = {}) => {
    values.clear();
    running = await start({
      store: memoryFence(),
      write: async (name, text) => {
        values.set(name, text);
        return `wrote ${text}`;
      },
      read: (name) => values.get(name) ?? 'nothing',
      ...service,
    });
    return running.url;
  };
  const put = (url: string, text: string, token?: string, signal?: AbortSignal) =>
    fetch(`${url}/values/a`, {
      method: 'PUT',
      body: text,
      headers: { 'Content-Type': 'text/plain', ...(token === undefined ? {} : { 'Fencing-Token': token }) },
      ...(signal === undefined ? {} : { signal }),
    });

  it.each(stores)(
    'S7: with its state %s, refuses a lower token, accepts an equal and a higher one',
    async (_where, store) => {
      const url = await serve({ store: store() });
      expect(await (await put(url, 'two', '2')).text()).toBe('wrote two');
      expect((await put(url, 'one', '1')).status).toBe(409);
      expect((await put(url, 'two again', '2')).status).toBe(200);
      expect((await put(url, 'three', '3')).status).toBe(200);
      expect(values.get('a')).toBe('three');
    },
  );

  it('S7: the answer is a problem that names the resource, the token and the highest honoured', async () => {
    const url = await serve();
    await put(url, 'x', '9007199254740993');
    const answer = await put(url, 'y', '9007199254740992');
    expect(answer.status).toBe(409);
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(await answer.json()).toMatchObject({
      type: 'urn:pawl:problem:stale-token',
      status: 409,
      code: 'PAWL_STALE_TOKEN',
      resource: 'a',
      token: '9007199254740992',
      highest: '9007199254740993',
      detail: expect.stringContaining('refused token'),
    });
  });

  it.each([
    ['none', undefined, 428, 'PAWL_MISSING_TOKEN'],
    ['an empty one', '', 428, 'PAWL_MISSING_TOKEN'],
    ['zero', '0', 400, 'PAWL_INVALID_TOKEN'],
    ['a sign', '-1', 400, 'PAWL_INVALID_TOKEN'],
    ['a leading zero', '01', 400, 'PAWL_INVALID_TOKEN'],
    ['too high a one', '9223372036854775808', 400, 'PAWL_INVALID_TOKEN'],
    ['words', 'let me in', 400, 'PAWL_INVALID_TOKEN'],
    ['two', '1, 2', 400, 'PAWL_INVALID_TOKEN'],
  ])(
    'S7: refuses a request whose token is %s, and the handler does not run',
    async (_what, token, status, code) => {
      const url = await serve();
      const answer = await put(url, 'x', token);
      expect(answer.status).toBe(status);
      expect(await answer.json()).toMatchObject({ code, status });
      expect(values.size).toBe(0);
    },
  );

  it('lets requests through that are for no fenced resource', async () => {
    const url = await serve();
    expect(await (await fetch(`${url}/values/a`)).text()).toBe('nothing');
  });

  it('S7: fails closed where the store of the fence is in trouble', async () => {
    const store = { raise: () => Promise.reject(new Error('the store is down')) };
    const url = await serve({ store });
    expect((await put(url, 'x', '1')).status).toBe(503);
    expect(values.size).toBe(0);
  });

  it('takes a signed sequencer in place of the token, and refuses a forged one', async () => {
    const key = createSecretKey(randomBytes(32));
    const sign = (token: bigint) => signSequencer(key, { lock: 'a', mode: 'exclusive', slot: 0, token });
    const url = await serve({ store: memoryFence({ sequencer: { keys: key, required: true } }) });
    expect((await put(url, 'signed', sign(5n))).status).toBe(200);
    expect((await put(url, 'late', sign(4n))).status).toBe(409);
    expect(await (await put(url, 'forged', `${sign(6n).slice(0, -1)}`)).json()).toMatchObject({
      status: 400,
      code: 'PAWL_INVALID_SEQUENCER',
    });
    expect((await put(url, 'bare', '9223372036854775807')).status).toBe(400);
    expect(values.get('a')).toBe('signed');
  });

  it('S7: serialized, a handler that was let in is done before a higher token is honoured', async () => {
    const log: string[] = [];
    const { promise: goOn, resolve } = Promise.withResolvers<void>();
    const { promise: inside, resolve: isInside } = Promise.withResolvers<void>();
    const url = await serve({
      serialized: true,
      write: async (_name, text) => {
        log.push(`${text} begins`);
        isInside();
        if (text === 'old') await goOn;
        log.push(`${text} ends`);
        return text;
      },
    });
    const client = new AbortController();
    const old = put(url, 'old', '1', client.signal).catch(() => 'gone');
    await inside;
    // A client that goes away does not stop its handler, so its turn goes on.
    client.abort();
    expect(await old).toBe('gone');
    const current = put(url, 'new', '2');
    const other = fetch(`${url}/values/b`, {
      method: 'PUT',
      body: 'b',
      headers: { 'Content-Type': 'text/plain', 'Fencing-Token': '1' },
    });
    expect((await other).status).toBe(200);
    log.push('released');
    resolve();
    expect((await current).status).toBe(200);
    expect(log.filter((line) => !line.startsWith('b'))).toEqual([
      'old begins',
      'released',
      'old ends',
      'new begins',
      'new ends',
    ]);
    expect((await put(url, 'old', '1')).status).toBe(409);
  });

  it('S7: serialized, a refusal and a failure give the turn back', async () => {
    let fails = true;
    const url = await serve({
      serialized: true,
      write: async (_name, text) => {
        if (fails) return Promise.reject(new Error('disk full'));
        return text;
      },
    });
    if (_framework !== 'node:http') expect((await put(url, 'x', '2')).status).toBe(503);
    fails = false;
    await put(url, 'x', '2');
    expect((await put(url, 'x', '1')).status).toBe(409);
    expect((await put(url, 'x')).status).toBe(428);
    expect((await put(url, 'x', '2')).status).toBe(200);
  });

  it('S8: without a raise an update is lost between read and write; with it the late write is refused', async () => {
    const run = async (raises: boolean) => {
      await running?.close();
      const store = memoryFence();
      const url = await serve({ store });
      const read = async () => Number(await (await fetch(`${url}/values/a`)).text());
      await put(url, '100', '1');
      const late = await read();
      if (raises) store.raise('a', 2n);
      const seen = await read();
      const { status } = await put(url, `${late + 1}`, '1');
      await put(url, `${seen + 10}`, '2');
      return { status, value: await read() };
    };
    expect(await run(false)).toEqual({ status: 200, value: 110 });
    expect(await run(true)).toEqual({ status: 409, value: 110 });
  });

  it('S7, S8: whatever stale and current writers ask for at once, no effect of a lower token lands after a higher one was honoured', async () => {
    const step = fc.record({ token: fc.integer({ min: 1, max: 5 }), raise: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
        await running?.close();
        const store = memoryFence();
        const landed: number[] = [];
        const late: number[] = [];
        let honoured = 0;
        const url = await serve({
          serialized: true,
          store: {
            raise: (resource, bearer) => {
              store.raise(resource, bearer);
              honoured = Number(bearer);
            },
          },
          write: async (_name, text) => {
            // Long enough for other requests to arrive.
            for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
            if (Number(text) !== honoured) late.push(Number(text));
            landed.push(Number(text));
            return text;
          },
        });
        await Promise.all(steps.map(({ token }) => put(url, `${token}`, `${token}`)));
        expect(late).toEqual([]);
        expect(landed).toEqual([...landed].sort((a, b) => a - b));
      }),
      { numRuns: 15 },
    );
  });
});

describe('a handler that checks the token too', () => {
  it('S7: is refused in its store when another came after it was let in, and the client is told so', async () => {
    const data = memoryFence();
    const { promise: goOn, resolve } = Promise.withResolvers<void>();
    running = await FRAMEWORKS[0]?.[1]({
      store: memoryFence(),
      read: () => '',
      write: async (name, text) => {
        if (text === '6') await goOn;
        data.raise(name, BigInt(text));
        return text;
      },
    });
    const put = (token: string) =>
      fetch(`${running?.url}/values/a`, { method: 'PUT', body: token, headers: { 'Fencing-Token': token } });
    const old = put('6');
    // The second is let in only once the first is: until then it would be the first.
    let current = await put('5');
    while (current.status !== 409) current = await put('5');
    expect((await put('7')).status).toBe(200);
    resolve();
    const late = await old;
    expect(late.status).toBe(409);
    expect(await late.json()).toMatchObject({ resource: 'a', token: '6', highest: '7' });
  });

  it('has problemOf for its error handler, which knows the errors of fences and no others', () => {
    const store = memoryFence();
    store.raise('a', 2n);
    try {
      store.raise('a', 1n);
      expect.unreachable();
    } catch (error) {
      expect(problemOf(error)).toMatchObject({ status: 409, resource: 'a', token: '1', highest: '2' });
    }
    expect(problemOf(new Error('disk full'))).toBeUndefined();
    expect(problemOf(Object.assign(new Error(), { code: 'ENOENT' }))).toBeUndefined();
    expect(problemOf(undefined)).toBeUndefined();
  });
});

describe('what a request carries', () => {
  it('is a token, or a text that only a fence with keys can read', () => {
    expect(bearerOf('42')).toBe(42n);
    expect(bearerOf(undefined)).toBeUndefined();
    expect(bearerOf('pawl1.a.b')).toBe('pawl1.a.b');
    expect(bearerOf(['1', '2'])).toBe('1, 2');
  });

  it('is set by fencedFetch on every request, next to the headers that are there', async () => {
    const seen: Request[] = [];
    const send = fencedFetch({ token: 7n }, async (input, init) => {
      seen.push(new Request(input, init));
      return new Response('ok');
    });
    await send('http://localhost/a', { method: 'PUT', body: 'x', headers: { 'X-Own': 'yes' } });
    await send(new Request('http://localhost/b', { headers: { 'X-Own': 'yes', 'Fencing-Token': '1' } }));
    for (const request of seen) {
      expect(request.headers.get('fencing-token')).toBe('7');
      expect(request.headers.get('x-own')).toBe('yes');
    }
    expect(seen[0]?.method).toBe('PUT');
    expect(() => fencedFetch({ token: undefined as unknown as bigint })).toThrow(
      expect.objectContaining({ code: 'PAWL_MISSING_TOKEN' }),
    );
  });

  it('C3: a request is aborted with the lease, and by its own signal too', async () => {
    const lease = new AbortController();
    const own = new AbortController();
    const send = fencedFetch(
      { token: 1n, sequencer: 'signed', signal: lease.signal },
      async (_input, init) => {
        expect(new Headers(init?.headers).get('fencing-token')).toBe('signed');
        return new Promise<never>((_, reject) =>
          init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)),
        );
      },
    );
    const first = send('http://localhost', { signal: own.signal });
    own.abort(new Error('changed my mind'));
    await expect(first).rejects.toThrow('changed my mind');
    const second = send('http://localhost');
    lease.abort(new Error('the lease is at risk'));
    await expect(second).rejects.toThrow('the lease is at risk');
  });

  it('goes to a store and a resource, or the fence cannot be made', () => {
    const usage = expect.objectContaining({ code: 'PAWL_FENCE_USAGE' });
    expect(() => expressFence({ store: {}, resource: () => 'a' } as never)).toThrow(usage);
    expect(() => nodeFence({ store: memoryFence() } as never, () => {})).toThrow(usage);
  });
});
