import type { ServerResponse } from 'node:http';
import { Gate } from './gate.ts';
import { FENCING_TOKEN } from './header.ts';
import { whenEnded } from './node.ts';
import type { HttpFenceOptions } from './options.ts';
import { PROBLEM_TYPE } from './problem.ts';

/** What the fence calls on Fastify's request. */
export interface FastifyLikeRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** What the fence calls on Fastify's reply. */
export interface FastifyLikeReply {
  readonly raw: Pick<ServerResponse, 'end' | 'writableEnded'>;
  code(status: number): unknown;
  header(name: string, value: string): unknown;
  send(body: string): unknown;
}

/**
 * A hook for Fastify: `app.put('/accounts/:id', { preHandler: fastifyFence({ … }) }, handler)`, or `app.addHook('preHandler', …)`.
 * With `serialized`, the turn of a handler lasts until the reply is sent, so it has to be sent when its effects are done, not before.
 *
 * @throws FenceUsageError
 */
export function fastifyFence<R extends FastifyLikeRequest>(
  options: HttpFenceOptions<R>,
): (request: R, reply: FastifyLikeReply) => Promise<unknown> {
  const gate = new Gate(options);
  return async (request, reply) => {
    const entry = await gate.enter(request, request.headers[FENCING_TOKEN.toLowerCase()]);
    if (entry.problem === undefined) {
      // Where somebody answered while it waited for its turn, Fastify calls no handler.
      if (reply.raw.writableEnded) entry.done();
      else if (gate.serialized) whenEnded(reply.raw, entry.done);
      return undefined;
    }
    reply.code(entry.problem.status);
    reply.header('Content-Type', PROBLEM_TYPE);
    reply.send(JSON.stringify(entry.problem));
    return reply;
  };
}
