import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import express from 'express';
import Fastify, { type FastifyRequest } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { StaleTokenError } from '../../src/fences/errors.ts';
import {
  expressFence,
  type FenceStore,
  fastifyFence,
  memoryFence,
  nodeFence,
  problemOf,
} from '../../src/fences/http/index.ts';
import { listen } from './http-servers.ts';

/** What somebody does who answers in the handler's stead, such as a limit of time: with 503. */
type Answers = (answer: () => void) => void;
type Start = (store: FenceStore, answers: Answers, handle: (end: () => void) => void) => Promise<string>;

let close = async () => {};
afterEach(() => close());

async function serve(listener: RequestListener): Promise<string> {
  const running = await listen(createServer(listener));
  close = running.close;
  return running.url;
}

const resource = () => 'a';
const unavailable = (response: ServerResponse) => () => response.writeHead(503).end('too late');

const FRAMEWORKS: readonly [name: string, start: Start][] = [
  [
    'node:http',
    (store, answers, handle) => {
      const fenced = nodeFence({ store, resource, serialized: true }, (_request, response) => {
        handle(() => response.writableEnded || response.end('done'));
      });
      return serve((request, response) => {
        answers(unavailable(response));
        void fenced(request, response);
      });
    },
  ],
  [
    'Express',
    (store, answers, handle) => {
      const app = express();
      app.use((_request, response, next) => {
        answers(unavailable(response));
        next();
      });
      app.put('/', expressFence({ store, resource, serialized: true }), (_request, response) => {
        handle(() => response.writableEnded || response.end('done'));
      });
      return serve(app);
    },
  ],
  [
    'Fastify',
    async (store, answers, handle) => {
      const app = Fastify();
      app.addHook('onRequest', async (_request, reply) => answers(() => reply.code(503).send('too late')));
      app.put(
        '/',
        { preHandler: fastifyFence<FastifyRequest>({ store, resource, serialized: true }) },
        (_request, reply) => {
          handle(() => reply.sent || reply.send('done'));
        },
      );
      const url = await app.listen({ port: 0, host: '127.0.0.1' });
      close = () => app.close();
      return url;
    },
  ],
];

const put = (url: string, token: string) =>
  fetch(url, { method: 'PUT', headers: { 'Fencing-Token': token } });

describe.each(FRAMEWORKS)(
  'a request that somebody answers before the fence of %s does',
  (_framework, start) => {
    it('keeps no turn, where it waited for one', async () => {
      const answer: (() => void)[] = [];
      const end: (() => void)[] = [];
      const url = await start(
        memoryFence(),
        (each) => answer.push(each),
        (each) => end.push(each),
      );
      const first = put(url, '1');
      await expect.poll(() => end).toHaveLength(1);
      const second = put(url, '2');
      await expect.poll(() => answer).toHaveLength(2);
      answer[1]?.();
      expect((await second).status).toBe(503);
      end[0]?.();
      expect((await first).status).toBe(200);
      const third = put(url, '3');
      await expect.poll(() => answer).toHaveLength(3);
      await expect.poll(() => end.length).toBeGreaterThan(1);
      for (const each of end) each();
      expect((await third).status).toBe(200);
    });

    it('is left at that, where it is refused', async () => {
      const refuse: ((error: Error) => void)[] = [];
      const store = { raise: () => new Promise<void>((_resolve, reject) => refuse.push(reject)) };
      const answer: (() => void)[] = [];
      const url = await start(
        store,
        (each) => answer.push(each),
        () => expect.unreachable(),
      );
      const refused = put(url, '1');
      await expect.poll(() => refuse).toHaveLength(1);
      answer[0]?.();
      expect((await refused).status).toBe(503);
      // A rejection that nobody handles would end the process, and fails this run.
      refuse[0]?.(new StaleTokenError('a', 1n, 2n));
      await new Promise((resolve) => setTimeout(resolve, 20));
    });
  },
);

describe('problemOf', () => {
  it.each(['constructor', '__proto__', 'toString', 'ENOENT', ''])(
    'knows no problem of the code %j',
    (code) => {
      expect(problemOf(Object.assign(new Error('x'), { code }))).toBeUndefined();
    },
  );
});
