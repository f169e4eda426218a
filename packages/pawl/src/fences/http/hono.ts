import { Gate } from './gate.ts';
import { FENCING_TOKEN } from './header.ts';
import type { HttpFenceOptions } from './options.ts';
import { PROBLEM_TYPE } from './problem.ts';

/** What the fence calls on Hono's context. */
export interface HonoLikeContext {
  readonly req: { header(name: string): string | undefined };
}

/**
 * Middleware for Hono: `app.put('/accounts/:id', honoFence({ … }), handler)`.
 *
 * @throws FenceUsageError
 */
export function honoFence<C extends HonoLikeContext>(
  options: HttpFenceOptions<C>,
): (context: C, next: () => Promise<void>) => Promise<Response | undefined> {
  const gate = new Gate(options);
  return async (context, next) => {
    const { problem, ...entry } = await gate.enter(context, context.req.header(FENCING_TOKEN));
    if (problem !== undefined) {
      return new Response(JSON.stringify(problem), {
        status: problem.status,
        headers: { 'Content-Type': PROBLEM_TYPE },
      });
    }
    try {
      await next();
    } finally {
      if ('done' in entry) entry.done();
    }
    return undefined;
  };
}
