import type { ServerResponse } from 'node:http';
import { type Answering, whenAnswered } from './answered.ts';
import { Gate } from './gate.ts';
import { FENCING_TOKEN } from './header.ts';
import type { HttpFenceOptions } from './options.ts';
import { PROBLEM_TYPE } from './problem.ts';

/** What the fence calls on Fastify's request. */
export interface FastifyLikeRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** What the fence calls on Fastify's reply. */
export interface FastifyLikeReply {
  readonly raw: Answering & Pick<ServerResponse, 'writableEnded'>;
  code(status: number): unknown;
  header(name: string, value: string): unknown;
  send(body?: unknown): unknown;
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
      else if (gate.serialized) whenSent(reply, entry.done);
      return undefined;
    }
    reply.code(entry.problem.status);
    reply.header('Content-Type', PROBLEM_TYPE);
    reply.send(JSON.stringify(entry.problem));
    return reply;
  };
}

/** A stream that is sent is read, or closed, by Fastify: whoever sends it is done. */
function whenSent(reply: FastifyLikeReply, done: () => void): void {
  const handedOver = whenAnswered(reply.raw, done);
  const { send } = reply;
  reply.send = (...args) => {
    try {
      return send.apply(reply, args);
    } finally {
      handedOver();
    }
  };
}
