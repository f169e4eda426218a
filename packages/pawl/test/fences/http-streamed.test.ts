import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import express from 'express';
import Fastify, { type FastifyRequest } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { expressFence, fastifyFence, memoryFence, nodeFence } from '../../src/fences/http/index.ts';
import { listen } from './http-servers.ts';

/** How a handler answers a client. */
type Answer = (response: ServerResponse) => unknown;
type Start = (answers: readonly Answer[]) => Promise<Client>;
/** Asks with that token. */
type Client = (token: number, signal?: AbortSignal) => Promise<Response>;

let close = async () => {};
afterEach(() => close());

async function serve(listener: RequestListener): Promise<Client> {
  const running = await listen(createServer(listener));
  close = running.close;
  return clientOf(running.url);
}

function clientOf(url: string): Client {
  return (token, signal) =>
    fetch(url, {
      method: 'PUT',
      headers: { 'Fencing-Token': String(token) },
      ...(signal === undefined ? {} : { signal }),
    });
}

const resource = () => 'a';
const serialized = true;
const tokenOf = (request: IncomingMessage) => Number(request.headers['fencing-token']);
/** Each token but the first is answered at once. */
const answerTo = (token: number, answers: readonly Answer[], response: ServerResponse) =>
  (answers[token - 1] ?? ((each: ServerResponse) => each.end('done')))(response);

const RAW: readonly [name: string, start: Start][] = [
  [
    'node:http',
    (answers) => {
      const fenced = nodeFence({ store: memoryFence(), resource, serialized }, (request, response) => {
        answerTo(tokenOf(request), answers, response);
      });
      return serve((request, response) => void fenced(request, response));
    },
  ],
  [
    'Express',
    (answers) => {
      const app = express().set('env', 'test');
      app.put('/', expressFence({ store: memoryFence(), resource, serialized }), (request, response) => {
        answerTo(tokenOf(request), answers, response);
      });
      return serve(app);
    },
  ],
  [
    'Fastify, by its raw response',
    async (answers) => {
      const app = Fastify({ forceCloseConnections: true });
      const fence = fastifyFence<FastifyRequest>({ store: memoryFence(), resource, serialized });
      app.put('/', { preHandler: fence }, (request, reply) => {
        reply.hijack();
        answerTo(tokenOf(request.raw), answers, reply.raw);
      });
      close = () => app.close();
      return clientOf(await app.listen({ port: 0, host: '127.0.0.1' }));
    },
  ],
];

/** An answer that goes on for ever. */
async function* endless() {
  for (;;) {
    yield new Uint8Array(10_000);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** A client that goes away once `begun` says so. */
async function leaving(ask: Client, token: number, begun: Promise<unknown>): Promise<void> {
  const leave = new AbortController();
  const asked = ask(token, leave.signal).catch(() => undefined);
  await begun;
  leave.abort();
  await asked;
}

describe.each(RAW)('the turn of a handler of %s that streams its answer', (_framework, start) => {
  it.each([
    ['pipes it', (response: ServerResponse) => Readable.from(endless()).pipe(response)],
    [
      'has a pipeline',
      (response: ServerResponse) => pipeline(Readable.from(endless()), response).catch(() => {}),
    ],
    ['gives it up', (response: ServerResponse) => response.write('x', () => response.destroy())],
  ])('is over when its client has gone, where it %s', async (_how, answer) => {
    const begun = Promise.withResolvers<void>();
    const ask = await start([
      (response) => {
        begun.resolve();
        answer(response);
      },
    ]);
    await leaving(
      ask,
      1,
      begun.promise.then(() => new Promise((resolve) => setTimeout(resolve, 20))),
    );
    expect(await (await ask(2)).text()).toBe('done');
  });

  it('is over when it begins to stream, where its client has gone before', async () => {
    const [begun, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const ask = await start([
      (response) => {
        response.once('close', () => setImmediate(gone.resolve));
        begun.resolve();
        void gone.promise.then(() => Readable.from(endless()).pipe(response));
      },
    ]);
    await leaving(ask, 1, begun.promise);
    expect(await (await ask(2)).text()).toBe('done');
  });

  it('is over when it streams to a client who went away while it waited for its turn', async () => {
    const first = Promise.withResolvers<ServerResponse>();
    const ask = await start([
      (response) => first.resolve(response),
      (response) => Readable.from(endless()).pipe(response),
    ]);
    const one = ask(1);
    const response = await first.promise;
    const second = new Promise((resolve) => setTimeout(resolve, 50));
    await leaving(ask, 2, second);
    const third = ask(3);
    await new Promise((resolve) => setTimeout(resolve, 50));
    response.end('first');
    expect(await (await one).text()).toBe('first');
    expect(await (await third).text()).toBe('done');
  });

  it('S7: goes on when its client has gone, where it is still at work', async () => {
    const [begun, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let working: ServerResponse | undefined;
    const ask = await start([
      (response) => {
        working = response;
        response.once('close', gone.resolve);
        response.write('at it');
        begun.resolve();
      },
    ]);
    await leaving(ask, 1, begun.promise);
    await gone.promise;
    let let2in = false;
    const next = ask(2).then((answer) => {
      let2in = true;
      return answer;
    });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(let2in).toBe(false);
    working?.end();
    expect(await (await next).text()).toBe('done');
  });
});

describe('the turn of a handler of Express', () => {
  const app = (fenced: express.RequestHandler, ...handlers: express.RequestHandler[]) =>
    serve(
      express()
        .set('env', 'test')
        .put('/', fenced, ...handlers),
    );
  const options = () => ({ store: memoryFence(), resource, serialized });
  /** The answer to the first is cut off. */
  const cutOff = async (ask: Client) => {
    const text = ask(1).then((answer) => answer.text());
    await expect(text).rejects.toThrow();
    expect(await (await ask(2)).text()).toBe('done');
  };

  it('is over where it fails in the middle of its answer', async () => {
    const ask = await app(expressFence(options()), (request, response) => {
      if (tokenOf(request) > 1) return response.end('done');
      response.write('x');
      throw new Error('disk full');
    });
    await cutOff(ask);
  });

  it('lasts by nodeFence until its promise settles, however it answers', async () => {
    const [gone, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const begun = Promise.withResolvers<void>();
    const log: string[] = [];
    const ask = await app(
      nodeFence(options(), async (request, response) => {
        if (tokenOf(request) > 1) {
          log.push('second');
          return response.end('done');
        }
        response.once('close', gone.resolve);
        response.write('x');
        begun.resolve();
        await goOn.promise;
        log.push('first');
      }),
    );
    await leaving(ask, 1, begun.promise);
    await gone.promise;
    const next = ask(2);
    await new Promise((resolve) => setTimeout(resolve, 50));
    goOn.resolve();
    expect(await (await next).text()).toBe('done');
    expect(log).toEqual(['first', 'second']);
  });
});

describe('the turn of a handler of Fastify that sends a stream', () => {
  const web = () => ReadableStream.from(endless());
  it.each([
    ['of Node', () => Readable.from(endless())],
    ['of the web', web],
    ['in a Response', () => new Response(web())],
  ])('is over when its client has gone: one %s', async (_kind, stream) => {
    for (const goesFirst of [false, true]) {
      const [begun, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const app = Fastify({ forceCloseConnections: true });
      const fence = fastifyFence<FastifyRequest>({ store: memoryFence(), resource, serialized });
      app.put('/', { preHandler: fence }, async (request, reply) => {
        if (tokenOf(request.raw) > 1) return 'done';
        reply.raw.once('close', () => setImmediate(gone.resolve));
        begun.resolve();
        if (goesFirst) await gone.promise;
        return stream();
      });
      close = () => app.close();
      const ask = clientOf(await app.listen({ port: 0, host: '127.0.0.1' }));
      await leaving(
        ask,
        1,
        begun.promise.then(() => new Promise((resolve) => setTimeout(resolve, 20))),
      );
      expect(await (await ask(2)).text()).toBe('done');
      await app.close();
    }
  });
});
