import type { IncomingMessage, ServerResponse } from 'node:http';
import { whenAnswered } from './answered.ts';
import { Gate } from './gate.ts';
import { FENCING_TOKEN } from './header.ts';
import type { HttpFenceOptions } from './options.ts';
import { PROBLEM_TYPE, type Problem, problemOf } from './problem.ts';

/**
 * Fences a handler of `node:http`. Where the store of the fence is in trouble, the answer is 503. Where the handler itself checks the token and
 * throws what its fence threw, the client gets the same problem as from this one.
 *
 * @param handler where it returns a promise, its turn (`serialized`) lasts until that settles; otherwise until it has answered.
 * @throws FenceUsageError
 */
export function nodeFence(
  options: HttpFenceOptions<IncomingMessage>,
  handler: (request: IncomingMessage, response: ServerResponse) => unknown,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const gate = new Gate(options);
  return async (request, response) => {
    const entry = await gate.enter(request, headerOf(request)).catch(() => undefined);
    if (entry === undefined) return send(response, UNAVAILABLE);
    if (entry.problem !== undefined) return send(response, entry.problem);
    let answered = response.writableEnded;
    let lastsUntilAnswer = false;
    whenAnswered(response, () => {
      answered = true;
      if (lastsUntilAnswer) entry.done();
    });
    try {
      const result = handler(request, response);
      if (isPromise(result)) await result;
      else if (!answered) {
        lastsUntilAnswer = true;
        return;
      }
      entry.done();
    } catch (error) {
      entry.done();
      const problem = problemOf(error);
      if (problem === undefined || response.headersSent) throw error;
      send(response, problem);
    }
  };
}

/**
 * Middleware for Express (and Connect): `app.put('/accounts/:id', expressFence({ … }), handler)`. With `serialized`, the turn of a
 * handler lasts until it has answered, so it has to answer when its effects are done, not before.
 *
 * @throws FenceUsageError
 */
export function expressFence<R extends IncomingMessage = IncomingMessage>(
  options: HttpFenceOptions<R>,
): (request: R, response: ServerResponse, next: (error?: unknown) => void) => void {
  const gate = new Gate(options);
  return (request, response, next) => {
    gate.enter(request, headerOf(request)).then((entry) => {
      if (entry.problem !== undefined) return send(response, entry.problem);
      if (gate.serialized) {
        // Somebody answered while it waited for its turn, so nothing would end that.
        if (response.writableEnded) return entry.done();
        whenAnswered(response, entry.done);
      }
      next();
    }, next);
  };
}

const UNAVAILABLE = {
  type: 'about:blank',
  title: 'Service Unavailable',
  status: 503,
  detail: 'The store of the fence did not answer, so the request was not let in.',
};

function headerOf(request: IncomingMessage): string | string[] | undefined {
  return request.headers[FENCING_TOKEN.toLowerCase()];
}

function send(response: ServerResponse, problem: Problem | typeof UNAVAILABLE): void {
  // Somebody answered meanwhile, such as a limit of time.
  if (response.headersSent) return;
  response.statusCode = problem.status;
  response.setHeader('Content-Type', PROBLEM_TYPE);
  response.end(JSON.stringify(problem));
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value;
}
