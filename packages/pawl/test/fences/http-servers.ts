import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import express, { type Request } from 'express';
import Fastify, { type FastifyRequest } from 'fastify';
import { Hono } from 'hono';
import {
  expressFence,
  type FenceStore,
  fastifyFence,
  honoFence,
  nodeFence,
} from '../../src/fences/http/index.ts';

/** What one framework serves: `PUT /values/<name>` sets a value with a text, `GET` reads it. */
export interface Service {
  readonly store: FenceStore;
  readonly serialized?: boolean;
  /** What a write does; what it returns is the answer. */
  write(name: string, text: string): Promise<string>;
  read(name: string): string;
}

export interface Running {
  readonly url: string;
  close(): Promise<void>;
}

/** The four frameworks, each as its users would put it together. Reads need no token. */
export const FRAMEWORKS: readonly [name: string, start: (service: Service) => Promise<Running>][] = [
  ['node:http', (service) => listen(createServer(plain(service)))],
  ['Express', (service) => listen(createServer(expressApp(service)))],
  ['Fastify', startFastify],
  ['Hono', (service) => listen(createServer(getRequestListener(honoApp(service).fetch)))],
];

function plain(service: Service) {
  const nameOf = ({ url = '' }: IncomingMessage) => decodeURIComponent(url.slice('/values/'.length));
  const resource = (request: IncomingMessage) => (request.method === 'GET' ? undefined : nameOf(request));
  return nodeFence({ ...service, resource }, async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method === 'GET') return response.end(service.read(nameOf(request)));
    let text = '';
    for await (const chunk of request) text += chunk;
    return response.end(await service.write(nameOf(request), text));
  });
}

function expressApp(service: Service) {
  const app = express();
  const fence = expressFence<Request<{ name: string }>>({
    ...service,
    resource: ({ params }) => params.name,
  });
  app.get('/values/:name', (request, response) => {
    response.end(service.read(request.params.name));
  });
  app.put('/values/:name', fence, express.text(), async (request, response) => {
    response.end(await service.write(request.params.name, request.body));
  });
  app.use((_error: unknown, _request: unknown, response: express.Response, _next: unknown) => {
    response.status(503).end();
  });
  return app;
}

async function startFastify(service: Service): Promise<Running> {
  type Route = { Params: { name: string }; Body: string };
  const app = Fastify();
  const fence = fastifyFence<FastifyRequest<Route>>({ ...service, resource: ({ params }) => params.name });
  app.get<Route>('/values/:name', async (request) => service.read(request.params.name));
  app.put<Route>('/values/:name', { preHandler: fence }, async (request) =>
    service.write(request.params.name, request.body),
  );
  app.setErrorHandler((_error, _request, reply) => reply.code(503).send());
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  return { url, close: () => app.close() };
}

function honoApp(service: Service): Hono {
  const app = new Hono();
  const fence = honoFence({
    ...service,
    resource: (context: {
      req: { param(name: string): string | undefined; header(name: string): string | undefined };
    }) => context.req.param('name'),
  });
  app.get('/values/:name', (context) => context.text(service.read(context.req.param('name'))));
  app.put('/values/:name', fence, async (context) =>
    context.text(await service.write(context.req.param('name'), await context.req.text())),
  );
  app.onError((_error, context) => context.body(null, 503));
  return app;
}

/** Listens on a free port; closing ends what connections there are. */
export function listen(server: Server): Promise<Running> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      const close = () =>
        new Promise<void>((closed) => {
          server.closeAllConnections();
          server.close(() => closed());
        });
      resolve({ url: `http://127.0.0.1:${port}`, close });
    });
  });
}
