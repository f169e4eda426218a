import { describe, expect, it } from 'vitest';
import { MemoryFaults, memoryEngine } from '../../src/engines/memory/index.ts';
import { hashToken } from '../../src/server/index.ts';
import { RecordingTracer } from './recording-tracer.ts';
import { acquireMessage, ask, client, greeted, running, until } from './setup.ts';
import {
  ERROR_STATUS,
  held,
  PARENT,
  SAID,
  SERVER_SPAN,
  session,
  TRACE,
  TRACEPARENT,
  traced,
} from './traced.ts';

describe('traces of a server over WebSocket', () => {
  it("an acquire and its release are children of the client's span, with the token", async () => {
    const { tracer, url } = await traced();
    const own = new RecordingTracer('a');
    const pawl = await client(url, { tracer: own });
    const lease = await pawl.acquire('x');
    await lease.release();
    const parent = { ...own.spans[0]?.context, isRemote: true };
    await until(() => tracer.named('pawl/release')[0]?.ends === 1);
    expect(tracer.named('pawl/acquire')).toMatchObject([
      {
        kind: SERVER_SPAN,
        parent,
        context: { traceId: own.spans[0]?.context.traceId },
        attributes: {
          'rpc.system.name': 'pawl',
          'rpc.method': 'pawl/acquire',
          'rpc.response.status_code': 'OK',
          'network.protocol.name': 'websocket',
          'pawl.locks': 'x',
          'pawl.mode': 'exclusive',
          'pawl.outcome': 'granted',
          'pawl.token': String(lease.token),
        },
        status: undefined,
        ends: 1,
      },
    ]);
    expect(tracer.named('pawl/release')).toMatchObject([
      { kind: SERVER_SPAN, parent, attributes: { 'pawl.locks': 'x', 'pawl.outcome': 'released' } },
    ]);
    // It is shared by whoever needs one, so it belongs to no trace.
    expect(tracer.named('pawl/openSession')).toMatchObject([
      { parent: undefined, root: true, attributes: { 'pawl.ttl_ms': 10_000 }, ends: 1 },
    ]);
  });

  it('the span of an acquire that waits lasts until its grant, and tells how long it waited', async () => {
    const { tracer, url } = await traced();
    const pawl = await client(url);
    const held = await pawl.acquire('x');
    const waiting = pawl.acquire('x');
    await until(() => tracer.named('pawl/acquire')[1]?.events.length === 1);
    const [, span] = tracer.named('pawl/acquire');
    expect(span).toMatchObject({
      events: [{ name: 'pawl.queued', attributes: { 'pawl.ahead': 0 } }],
      ends: 0,
    });
    await held.release();
    const lease = await waiting;
    expect(span).toMatchObject({
      attributes: {
        'pawl.queued': true,
        'pawl.waited_ms': expect.any(Number),
        'pawl.outcome': 'granted',
        'pawl.token': String(lease.token),
        'rpc.response.status_code': 'OK',
      },
      ends: 1,
    });
    expect(tracer.named('pawl/acquire')[0]?.attributes).not.toHaveProperty('pawl.waited_ms');
  });

  it('several locks: the span has all of their tokens', async () => {
    const { tracer, url } = await traced();
    const pawl = await client(url);
    const { tokens } = await pawl.acquireAll(['a', 'b']);
    expect(tracer.named('pawl/acquire')[0]?.attributes).toMatchObject({
      'pawl.locks': 'a b',
      'pawl.token': [...tokens.values()].join(' '),
    });
  });

  it('S6: a wait that its client gives up ends its span', async () => {
    const { tracer, url } = await traced();
    const pawl = await client(url);
    await pawl.acquire('x');
    const giveUp = new AbortController();
    const waiting = expect(pawl.acquire('x', { signal: giveUp.signal })).rejects.toThrow();
    await until(() => tracer.named('pawl/acquire')[1]?.events.length === 1);
    giveUp.abort();
    await waiting;
    await until(() => tracer.allEndedOnce);
    expect(tracer.named('pawl/acquire')[1]).toMatchObject({
      attributes: { 'pawl.queued': true, 'pawl.outcome': 'cancelled' },
      status: undefined,
    });
  });

  it('a refusal is no error of the server', async () => {
    const { tracer, url } = await traced();
    const pawl = await client(url);
    await pawl.acquire('x');
    expect(await pawl.tryAcquire('x')).toBeNull();
    await expect(pawl.breakLock('x', { token: 10n ** 9n, reason: 'no' })).rejects.toMatchObject({
      code: 'PAWL_NOT_HELD',
    });
    expect(tracer.named('pawl/acquire')[1]).toMatchObject({
      attributes: { 'pawl.outcome': 'held', 'rpc.response.status_code': 'PAWL_HELD' },
      status: undefined,
    });
    expect(tracer.named('pawl/breakHold')[0]).toMatchObject({
      attributes: { 'pawl.token': '1000000000', 'rpc.response.status_code': 'PAWL_NOT_HELD' },
      status: undefined,
    });
    expect(tracer.spans.some(({ attributes }) => 'error.type' in attributes)).toBe(false);
  });

  it('L5: an engine that cannot be reached is one, with its code and what was thrown', async () => {
    const tracer = new RecordingTracer('b');
    const faults = new MemoryFaults();
    const { server } = await running({ engine: memoryEngine({ faults }), tracer });
    const raw = await greeted(server.url);
    const id = await raw.session();
    faults.unreachable = true;
    raw.send(acquireMessage(1, id, 'x'));
    expect(await raw.answer(1)).toMatchObject({ error: { code: 'PAWL_ENGINE_UNAVAILABLE' } });
    expect(tracer.named('pawl/acquire')).toMatchObject([
      {
        attributes: {
          'error.type': 'PAWL_ENGINE_UNAVAILABLE',
          'rpc.response.status_code': 'PAWL_ENGINE_UNAVAILABLE',
        },
        status: { code: ERROR_STATUS, message: 'PAWL_ENGINE_UNAVAILABLE' },
        exceptions: [{ code: 'PAWL_ENGINE_UNAVAILABLE' }],
        ends: 1,
      },
    ]);
    faults.unreachable = false;
  });

  it('what is not allowed has a span too', async () => {
    const tracer = new RecordingTracer('b');
    const permissions = [{ prefix: 'mine:', rights: ['acquire'] as const }];
    const auth = [{ name: 'ci', sha256: hashToken('secret'), permissions }];
    const { server } = await running({ tracer, auth });
    const pawl = await client(server.url, { token: 'secret' });
    await expect(pawl.acquire('other')).rejects.toMatchObject({ code: 'PAWL_FORBIDDEN' });
    expect(tracer.named('pawl/acquire')).toMatchObject([
      { attributes: { 'rpc.response.status_code': 'PAWL_FORBIDDEN' }, status: undefined, ends: 1 },
    ]);
  });

  it('a lease that is handed over and one that is broken', async () => {
    const { tracer, url } = await traced();
    const own = new RecordingTracer('a');
    const [one, other] = [await client(url, { tracer: own }), await client(url)];
    const lease = await one.acquire('x');
    const resumed = await other.resume(await lease.export());
    const parent = { spanId: own.spans[0]?.context.spanId };
    expect(tracer.named('pawl/transfer')).toMatchObject([
      // The exporting client knows the trace, the resuming one does not.
      { parent, attributes: { 'pawl.outcome': 'transferred', 'pawl.token': String(lease.token) } },
      { parent: undefined, attributes: { 'pawl.outcome': 'transferred', 'pawl.token': String(lease.token) } },
    ]);
    await other.breakLock('x', { token: resumed.token, reason: 'stuck' });
    expect(tracer.named('pawl/breakHold')).toMatchObject([
      { attributes: { 'pawl.locks': 'x', 'pawl.outcome': 'broken', 'pawl.reason': 'stuck' }, ends: 1 },
    ]);
  });

  it('any message may say its trace; an acquire without belongs to that of its owner', async () => {
    const { tracer, url } = await traced();
    const raw = await greeted(url);
    raw.send({ id: 1, method: 'openSession', params: { ttlMs: 10_000 }, traceparent: TRACEPARENT });
    const id = String((await raw.answer(1)).result);
    const ownersParent = `00-${TRACE}-00000000000000aa-00`;
    const params = { session: id, locks: [{ name: 'x' }], owner: { traceparent: ownersParent } };
    raw.send({ id: 2, method: 'acquire', params: { ...params, request: 'a' } });
    raw.send({ id: 3, method: 'acquire', params: { ...params, request: 'b' }, traceparent: TRACEPARENT });
    // A later version of the format may have more at its end.
    const later = `01-${TRACE}-${PARENT}-01-more`;
    raw.send({ id: 4, method: 'closeSession', params: { session: id }, traceparent: later });
    await raw.answer(4);
    expect(tracer.named('pawl/openSession')[0]?.parent).toEqual(SAID);
    expect(tracer.named('pawl/acquire').map(({ parent }) => parent)).toEqual([
      { traceId: TRACE, spanId: '00000000000000aa', traceFlags: 0, isRemote: true },
      SAID,
    ]);
    expect(tracer.named('pawl/closeSession')[0]?.parent).toEqual(SAID);
  });

  it('what only looks, and what renews, has no span', async () => {
    const { tracer, url } = await traced();
    const raw = await greeted(url);
    const id = await raw.session();
    raw.send({ id: 1, method: 'keepAlive', params: { session: id, holds: [] } });
    raw.send({ id: 2, method: 'inspect', params: { name: 'x' } });
    raw.send({ id: 3, method: 'list', params: {} });
    raw.send({ id: 4, method: 'ping' });
    await Promise.all([1, 2, 3, 4].map((number) => raw.answer(number)));
    expect(tracer.spans.map(({ name }) => name)).toEqual(['pawl/openSession']);
  });
});

describe('traces of a server over HTTP', () => {
  const headers = { traceparent: TRACEPARENT };

  it('every request that changes something is a child of what its header names, and shows no session', async () => {
    const { tracer, url } = await traced();
    const opened = await ask(url, 'POST', '/v1/sessions', { ttlMs: 10_000 }, headers);
    const id = { session: String(opened.body.session), request: 'r1' };
    const grant = await ask(url, 'POST', '/v1/locks/x/acquire', id, headers);
    const token = String(grant.body.token);
    await ask(url, 'POST', '/v1/locks/x/release', { ...id, token }, headers);
    await ask(url, 'POST', '/v1/locks/x/break', { token, reason: 'stuck' }, headers);
    await ask(url, 'DELETE', `/v1/sessions/${id.session}`, undefined, headers);
    await ask(url, 'GET', '/v1/locks', undefined, headers);
    await until(() => tracer.spans.length === 5 && tracer.allEndedOnce);
    const http = (method: string, route: string, status: number) => ({
      'network.protocol.name': 'http',
      'http.request.method': method,
      'http.route': route,
      'http.response.status_code': status,
    });
    expect(tracer.spans).toMatchObject([
      { name: 'pawl/openSession', attributes: http('POST', '/v1/sessions', 200) },
      {
        name: 'pawl/acquire',
        attributes: { ...http('POST', '/v1/locks/{name}/acquire', 200), 'pawl.token': token },
      },
      {
        name: 'pawl/release',
        attributes: { ...http('POST', '/v1/locks/{name}/release', 200), 'pawl.outcome': 'released' },
      },
      {
        name: 'pawl/breakHold',
        attributes: {
          ...http('POST', '/v1/locks/{name}/break', 409),
          'rpc.response.status_code': 'PAWL_NOT_HELD',
        },
      },
      { name: 'pawl/closeSession', attributes: http('DELETE', '/v1/sessions/{session}', 200) },
    ]);
    for (const span of tracer.spans) {
      expect(span).toMatchObject({ kind: SERVER_SPAN, parent: SAID, status: undefined });
      expect(JSON.stringify(span)).not.toContain(id.session);
    }
  });

  it('a wait is one span, until its grant or until its time is up', async () => {
    const { tracer, url } = await traced();
    const pawl = await client(url);
    const held = await pawl.acquire('x');
    const id = await session(url);
    const acquire = (request: string, waitMs: number) =>
      ask(url, 'POST', '/v1/locks/x/acquire', { session: id, request, waitMs }, headers);
    expect(await acquire('a', 30)).toMatchObject({ status: 409 });
    const waiting = acquire('b', 10_000);
    await until(() => tracer.named('pawl/acquire')[2]?.events.length === 1);
    expect(tracer.named('pawl/acquire')[2]?.ends).toBe(0);
    await held.release();
    const { token } = (await waiting).body;
    await until(() => tracer.allEndedOnce);
    expect(tracer.named('pawl/acquire').slice(1)).toMatchObject([
      {
        parent: SAID,
        attributes: {
          'rpc.response.status_code': 'PAWL_ACQUIRE_TIMEOUT',
          'http.response.status_code': 409,
          'pawl.queued': true,
          'pawl.waited_ms': expect.any(Number),
        },
        status: undefined,
      },
      { attributes: { 'pawl.outcome': 'granted', 'pawl.token': token, 'http.response.status_code': 200 } },
    ]);
  });

  it('S5: a wait that is asked for again goes on in the span of the second request', async () => {
    const { tracer, url } = await traced();
    const pawl = await client(url);
    const held = await pawl.acquire('x');
    const id = await session(url);
    const acquire = () =>
      ask(url, 'POST', '/v1/locks/x/acquire', { session: id, request: 'r', waitMs: 10_000 });
    const first = acquire();
    await until(() => tracer.named('pawl/acquire')[1]?.events.length === 1);
    const second = acquire();
    expect((await first).body.code).toBe('PAWL_REQUEST_MISMATCH');
    await until(() => tracer.named('pawl/acquire')[2]?.events.length === 1);
    await held.release();
    expect((await second).status).toBe(200);
    expect(tracer.named('pawl/acquire').slice(1)).toMatchObject([
      { attributes: { 'pawl.outcome': 'repeated' }, ends: 1 },
      { attributes: { 'pawl.outcome': 'granted' }, ends: 1 },
    ]);
  });

  it('a wait that the server turns away as it stops says so', async () => {
    const { tracer, url, server } = await traced();
    await held(url);
    const id = await session(url);
    const waiting = ask(url, 'POST', '/v1/locks/x/acquire', { session: id, request: 'r', waitMs: 10_000 });
    await until(() => tracer.named('pawl/acquire')[1]?.events.length === 1);
    await server.close();
    expect((await waiting).status).toBe(503);
    expect(tracer.named('pawl/acquire')[1]).toMatchObject({
      attributes: { 'rpc.response.status_code': 'PAWL_CLOSED', 'http.response.status_code': 503 },
      status: { code: ERROR_STATUS },
      ends: 1,
    });
  });
});
