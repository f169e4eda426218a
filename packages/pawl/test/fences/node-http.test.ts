import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { StaleTokenError } from '../../src/fences/errors.ts';
import { memoryFence, nodeFence } from '../../src/fences/http/index.ts';
import { listen } from './http-servers.ts';

type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;

let close = async () => {};
afterEach(() => close());

/** A server with one resource whose requests take turns. Its answers to what the fence itself throws are 500. */
async function serve(handler: Handler): Promise<(token: string) => Promise<Response>> {
  const fenced = nodeFence({ store: memoryFence(), resource: () => 'a', serialized: true }, handler);
  const server = createServer((request, response) => {
    fenced(request, response).catch(() => {
      if (response.headersSent) return response.destroy();
      response.statusCode = 500;
      response.end();
    });
  });
  const running = await listen(server);
  close = running.close;
  return (token) => fetch(running.url, { method: 'PUT', headers: { 'Fencing-Token': token } });
}

/** Long enough for a request that is not held back to get in. */
const aWhile = () => new Promise((resolve) => setTimeout(resolve, 50));

describe('the turn of a handler of node:http', () => {
  it.each([
    ['before its first wait', 0],
    ['after it', 1],
  ])('S7: lasts until its promise settles, although it ended the response %s', async (_what, waits) => {
    const log: string[] = [];
    const { promise: goOn, resolve } = Promise.withResolvers<void>();
    const put = await serve(async (request, response) => {
      const token = request.headers['fencing-token'];
      for (let wait = 0; wait < waits; wait += 1) await aWhile();
      response.end();
      if (token === '1') await goOn;
      log.push(`${token} took effect`);
    });
    expect((await put('1')).status).toBe(200);
    const next = put('2');
    await aWhile();
    expect(log).toEqual([]);
    resolve();
    expect((await next).status).toBe(200);
    await expect.poll(() => log).toEqual(['1 took effect', '2 took effect']);
  });

  it('S7: lasts until it ends the response, where it returns no promise', async () => {
    const held: ServerResponse[] = [];
    const put = await serve((_request, response) => {
      held.push(response);
    });
    const first = put('1');
    await expect.poll(() => held.length).toBe(1);
    const next = put('2');
    await aWhile();
    expect(held).toHaveLength(1);
    held[0]?.end('one');
    expect(await (await first).text()).toBe('one');
    await expect.poll(() => held.length).toBe(2);
    held[1]?.end('two');
    expect(await (await next).text()).toBe('two');
  });

  it.each<[string, Handler]>([
    ['that ended it at once', (_request, response) => response.end()],
    ['that ended it at once and returns nothing', (_request, response) => void response.end()],
    [
      'that threw',
      () => {
        throw new Error('disk full');
      },
    ],
    ['whose promise was rejected', () => Promise.reject(new Error('disk full'))],
  ])('is over after one %s', async (_what, handler) => {
    const put = await serve(handler);
    for (const token of ['1', '2', '2']) expect([200, 500]).toContain((await put(token)).status);
  });

  it('S7: what its own fence threw becomes the answer, unless it has begun one: then it is whose it was', async () => {
    for (const begins of [false, true]) {
      const put = await serve((_request, response) => {
        if (begins) response.write('begun');
        throw new StaleTokenError('b', 1n, 7n);
      });
      const answer = put('1');
      if (begins) await expect(answer.then((response) => response.text())).rejects.toThrow();
      else expect(await (await answer).json()).toMatchObject({ status: 409, resource: 'b', highest: '7' });
      await close();
    }
  });
});
