import { describe, expect, it } from 'vitest';
import type { PawlTracer } from '../../src/client/tracing.ts';
import { MemoryFaults, MemoryStore, memoryEngine } from '../../src/engines/memory/index.ts';
import { serve } from '../../src/server/index.ts';
import { FAILURES, failingTracer } from './recording-tracer.ts';
import { ask, client, greeted, running, until } from './setup.ts';
import { PARENT, session, TRACE, TRACEPARENT, traced } from './traced.ts';

describe('a trace that cannot be read', () => {
  it.each([
    ['nothing', ''],
    ['not the form', 'hello'],
    ['too short', `00-${TRACE.slice(1)}-${PARENT}-01`],
    ['capital letters', TRACEPARENT.toUpperCase()],
    ['no trace', `00-${'0'.repeat(32)}-${PARENT}-01`],
    ['no span', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['a version that never is', `ff-${TRACE}-${PARENT}-01`],
    ['more than version 00 has', `${TRACEPARENT}-more`],
    ['long', `01-${TRACE}-${PARENT}-01-${'a'.repeat(5000)}`],
  ])('is passed over on both protocols: %s', async (_, traceparent) => {
    const { tracer, url } = await traced();
    expect(await ask(url, 'POST', '/v1/sessions', { ttlMs: 1000 }, { traceparent })).toMatchObject({
      status: 200,
    });
    const raw = await greeted(url);
    raw.send({ id: 1, method: 'openSession', params: { ttlMs: 1000 }, traceparent });
    expect(await raw.answer(1)).toMatchObject({ result: expect.any(String) });
    expect(tracer.spans.map(({ parent }) => parent)).toEqual([undefined, undefined]);
  });

  it.each([[7], [null], [{}], [[TRACEPARENT]], [true]])('is passed over: %j', async (traceparent) => {
    const { tracer, url } = await traced();
    const raw = await greeted(url);
    raw.send({ id: 1, method: 'openSession', params: { ttlMs: 1000 }, traceparent });
    expect(await raw.answer(1)).toMatchObject({ result: expect.any(String) });
    expect(tracer.spans.map(({ parent }) => parent)).toEqual([undefined]);
  });
});

describe('a tracer that fails', () => {
  it.each(FAILURES)('harms nobody, and is told of once: %s', async (failure) => {
    const tracer = failingTracer(failure);
    const faults = new MemoryFaults();
    const store = new MemoryStore();
    const { server, entries } = await running({ engine: memoryEngine({ faults, store }), tracer });
    const url = server.url;
    const pawl = await client(url, { tracer: failingTracer(failure) });
    const held = await pawl.acquire('x');
    const waiting = pawl.acquire('x');
    await until(async () => (await pawl.inspect('x')).waiting === 1);
    const id = await session(url);
    const polled = ask(url, 'POST', '/v1/locks/x/acquire', { session: id, request: 'r', waitMs: 10_000 });
    await until(async () => (await pawl.inspect('x')).waiting === 2);
    expect(await pawl.tryAcquire('x')).toBeNull();
    await held.release();
    const lease = await waiting;
    expect(lease.token).toBeGreaterThan(held.token);
    await lease.release();
    expect(await polled).toMatchObject({ status: 200 });
    faults.failNext('openSession', { kind: 'refused' });
    expect(await ask(url, 'POST', '/v1/sessions', {})).toMatchObject({ status: 503 });
    expect(tracer.asked).toBeGreaterThanOrEqual(8);
    const told = entries.filter(({ event }) => event === 'tracerFailed');
    expect(told).toMatchObject([{ level: 'warn', problem: expect.any(String) }]);
    expect(entries.filter(({ event }) => event === 'fault')).toEqual([]);
  });

  it('what is no tracer is refused', async () => {
    const engine = memoryEngine();
    await expect(serve({ engine, port: 0, tracer: {} as PawlTracer })).rejects.toMatchObject({
      code: 'PAWL_INVALID_ARGUMENT',
      message: expect.stringContaining('@opentelemetry/api'),
    });
    await engine.close();
  });
});
