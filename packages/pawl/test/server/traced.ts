import { RecordingTracer } from './recording-tracer.ts';
import { ask, type Running, running } from './setup.ts';

/** The trace of a client, and how it says so. */
export const TRACE = '0af7651916cd43dd8448eb211c80319c';
export const PARENT = 'b7ad6b7169203331';
export const TRACEPARENT = `00-${TRACE}-${PARENT}-01`;
/** What a span has as its parent then. */
export const SAID = { traceId: TRACE, spanId: PARENT, traceFlags: 1, isRemote: true };
export const SERVER_SPAN = 1;
export const ERROR_STATUS = 2;

/** A server with a tracer that records. */
export async function traced(): Promise<
  Running & { readonly tracer: RecordingTracer; readonly url: string }
> {
  const tracer = new RecordingTracer('b');
  const world = await running({ tracer });
  return { tracer, url: world.server.url, ...world };
}

/** Opens a session by HTTP and @returns its id. */
export async function session(url: string): Promise<string> {
  return String((await ask(url, 'POST', '/v1/sessions', { ttlMs: 10_000 })).body.session);
}

/** Holds `x` without a client that would wait for its server. */
export async function held(url: string): Promise<{ release(): Promise<unknown> }> {
  const id = { session: await session(url), request: 'held' };
  const { token } = (await ask(url, 'POST', '/v1/locks/x/acquire', id)).body;
  return { release: () => ask(url, 'POST', '/v1/locks/x/release', { ...id, token }) };
}
