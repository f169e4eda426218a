import { describe, expect, it } from 'vitest';
import { acquireMessage, greeted, until } from './setup.ts';
import { held, traced } from './traced.ts';

describe('the end of a wait that no grant ends', () => {
  /** A lock that is held, and a raw client whose acquire waits for it. */
  async function waiting(listens = true) {
    const world = await traced();
    const { release } = await held(world.url);
    const raw = await greeted(world.url);
    const id = await raw.session();
    if (listens) raw.send({ id: 1, method: 'listen', params: { session: id } });
    raw.send(acquireMessage(2, id, 'x', true));
    expect(await raw.answer(2)).toMatchObject({ result: { kind: 'queued' } });
    const span = world.tracer.named('pawl/acquire')[1];
    if (span === undefined) throw new Error('The acquire has no span.');
    return { ...world, release, raw, id, span };
  }

  it('its session is closed', async () => {
    const { raw, id, span } = await waiting();
    expect(span.ends).toBe(0);
    raw.send({ id: 3, method: 'closeSession', params: { session: id } });
    await raw.answer(3);
    expect(span).toMatchObject({
      attributes: { 'pawl.outcome': 'sessionEnded', 'rpc.response.status_code': 'PAWL_SESSION_ENDED' },
      status: undefined,
      ends: 1,
    });
  });

  it('S3: its session expired, and what is asked in it then is refused', async () => {
    const { raw, id, engine, tracer, span } = await waiting();
    await engine.endSession(id);
    await until(() => span.ends === 1);
    expect(span.attributes).toMatchObject({ 'pawl.outcome': 'sessionEnded' });
    raw.send({ id: 3, method: 'listen', params: { session: id } });
    raw.send(acquireMessage(4, id, 'x', true));
    expect(await raw.answer(4)).toMatchObject({ result: { kind: 'sessionEnded' } });
    await until(() => tracer.named('pawl/acquire')[2]?.ends === 1);
    expect(tracer.named('pawl/acquire')[2]?.attributes).toMatchObject({
      'pawl.outcome': 'sessionEnded',
      'rpc.response.status_code': 'PAWL_SESSION_ENDED',
    });
  });

  it('its connection drops; asked for again, the wait goes on in another span', async () => {
    const { url, raw, id, span, tracer, release } = await waiting();
    raw.socket.terminate();
    await until(() => span.ends === 1);
    expect(span.attributes).toMatchObject({ 'pawl.queued': true, 'pawl.outcome': 'disconnected' });
    const again = await greeted(url);
    again.send({ id: 1, method: 'listen', params: { session: id } });
    again.send(acquireMessage(2, id, 'x', true));
    await again.answer(2);
    // Once more, with the connection still there.
    again.send({ ...(acquireMessage(2, id, 'x', true) as object), id: 3 });
    await again.answer(3);
    await release();
    await again.find((message) => message.event === 'granted');
    await until(() => tracer.allEndedOnce);
    expect(tracer.named('pawl/acquire').slice(2)).toMatchObject([
      { attributes: { 'pawl.outcome': 'repeated' } },
      { attributes: { 'pawl.outcome': 'granted', 'pawl.token': expect.stringMatching(/^\d+$/) } },
    ]);
  });

  it('nobody listens to its session, so it would not be heard of', async () => {
    const { span } = await waiting(false);
    expect(span).toMatchObject({ attributes: { 'pawl.outcome': 'queued', 'pawl.queued': true }, ends: 1 });
  });

  it('the server stops', async () => {
    const { server, tracer, span } = await waiting();
    await server.close();
    expect(span.attributes).toMatchObject({ 'pawl.outcome': 'disconnected' });
    expect(tracer.allEndedOnce).toBe(true);
  });
});
