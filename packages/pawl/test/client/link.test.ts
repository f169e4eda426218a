import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { RemoteService } from '../../src/client/remote/remote-service.ts';
import { SocketDialer } from '../../src/client/remote/socket-dialer.ts';
import { memoryGuarantees } from '../../src/engines/memory/index.ts';
import { loopback } from '../../src/protocol/loopback.ts';
import type { Closing, Transport } from '../../src/protocol/transport.ts';
import { SimulatedTime } from '../../src/testing/index.ts';

const HELLO = JSON.stringify([
  {
    event: 'hello',
    guarantees: memoryGuarantees,
    limits: { frameBytes: 65_536, messagesPerFrame: 1000, requestsInFlight: 1000 },
  },
]);

/** The server's end of each connection that a client makes, spoken for by the test. */
class Servers {
  readonly time = new SimulatedTime();
  readonly ends: { readonly url: string; readonly frames: string[]; readonly far: Transport }[] = [];
  readonly closings: Closing[] = [];
  readonly service: RemoteService;

  constructor(...urls: string[]) {
    const dial = async (url: string) => {
      const [near, far] = loopback();
      const frames: string[] = [];
      far.start({
        onFrame: (frame) => frames.push(frame),
        onClose: (closing) => this.closings.push(closing),
      });
      this.ends.push({ url, frames, far });
      return near;
    };
    this.service = new RemoteService({ urls, dialer: { dial }, clock: this.time.clock() });
    onTestFinished(() => this.service.close());
  }

  /** The newest connection. */
  get end() {
    const end = this.ends.at(-1);
    if (end === undefined) throw new Error('Nobody has connected.');
    return end;
  }

  async greet(): Promise<void> {
    await this.time.advance(1);
    this.end.far.send(HELLO);
    await this.time.advance(1);
  }
}

describe('a client of a server', () => {
  it('L5: knows nothing of the engine before a server has greeted, and says so', async () => {
    const servers = new Servers('a');
    expect(() => servers.service.guarantees).toThrow(
      expect.objectContaining({ code: 'PAWL_ENGINE_UNAVAILABLE', outcome: 'definite' }),
    );
    const ready = servers.service.ready();
    await servers.greet();
    await ready;
    expect(servers.service.guarantees).toEqual(memoryGuarantees);
  });

  it('asks nothing more once it was closed, nor of a server that greets after that', async () => {
    const servers = new Servers('a');
    await servers.time.advance(1);
    const { service } = servers;
    const asked = service.inspect('x').catch((error: unknown) => error);
    await service.close();
    expect(await asked).toMatchObject({ code: 'PAWL_CLOSED' });
    await expect(service.inspect('x')).rejects.toMatchObject({ code: 'PAWL_CLOSED' });
    await servers.greet();
    expect(servers.end.frames).toEqual([]);
    expect(servers.closings).toEqual([{ code: 1000, reason: '' }]);
    await servers.time.advance(10_000);
    expect(servers.ends).toHaveLength(1);
  });

  it.each([
    ['the token has expired', 'the token has expired'],
    ['', 'it closed the connection'],
  ])(
    'C5: that is told to prove itself (%j) fails all that it asks with that, and does not come again',
    async (reason, said) => {
      const servers = new Servers('a');
      await servers.greet();
      const asked = servers.service.inspect('x').catch((error: unknown) => error);
      await servers.time.advance(1);
      servers.end.far.close(4401, reason);
      await servers.time.advance(1);
      expect(await asked).toMatchObject({
        code: 'PAWL_UNAUTHENTICATED',
        message: expect.stringContaining(said),
      });
      await servers.time.advance(10_000);
      expect(servers.ends).toHaveLength(1);
    },
  );

  it('S5: that is no longer let in says of what it had sent that it may have happened, and of the rest that it did not', async () => {
    const servers = new Servers('a');
    await servers.greet();
    const failure = (name: string) =>
      servers.service
        .release({ session: 's', request: name }, [{ name, token: 1n }], false)
        .catch((error: unknown) => error);
    const sent = failure('sent');
    await servers.time.advance(1);
    servers.end.far.cut();
    await servers.time.advance(1);
    const unsent = failure('unsent');
    for (let i = 0; i < 40 && servers.ends.length < 2; i += 1) await servers.time.advance(100);
    servers.end.far.close(4401, 'the token has expired');
    await servers.time.advance(1);
    const code = 'PAWL_UNAUTHENTICATED';
    expect(await sent).toMatchObject({ code, outcome: 'indefinite', name: 'UnauthenticatedError' });
    expect(await unsent).toMatchObject({ code, outcome: 'definite' });
  });

  it.each([['{"not":"a list"}'], ['[{"event":"hello"}]'], ['no JSON']])(
    'leaves a server that sends %s for the next, where it asks again',
    async (frame) => {
      const servers = new Servers('a', 'b');
      const asked = servers.service.position({ session: 's', request: 'r' }, 'x');
      await servers.time.advance(1);
      servers.end.far.send(frame);
      for (let i = 0; i < 40 && servers.ends.length < 2; i += 1) await servers.time.advance(100);
      expect(servers.ends.map(({ url }) => url)).toEqual(['a', 'b']);
      await servers.greet();
      const [sent] = JSON.parse(servers.end.frames[0] ?? '[]');
      expect(sent).toMatchObject({ method: 'position' });
      servers.end.far.send(JSON.stringify([{ id: sent.id, result: 3 }]));
      expect(await asked).toBe(3);
    },
  );

  it('passes over an event that it does not know, and hears the next', async () => {
    const servers = new Servers('a');
    await servers.greet();
    const heard: unknown[] = [];
    servers.service.listen('s', (event) => heard.push(event));
    await servers.time.advance(1);
    servers.end.far.send(
      JSON.stringify([
        { event: 'promoted', session: 's' },
        { event: 'broken', session: 's', request: 'r', name: 'x', reason: 'why' },
      ]),
    );
    await servers.time.advance(1);
    expect(heard).toEqual([{ kind: 'broken', request: 'r', name: 'x', reason: 'why' }]);
  });

  it.each([
    [401, 'PAWL_UNAUTHENTICATED'],
    [403, 'PAWL_FORBIDDEN'],
    [503, 'PAWL_ENGINE_UNAVAILABLE'],
  ])('C5: whose handshake is answered with %d is told %s', async (status, code) => {
    const server = createServer();
    server.on('upgrade', (_request, socket) => socket.end(`HTTP/1.1 ${status} No\r\n\r\n`));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    await expect(new SocketDialer(undefined).dial(`ws://127.0.0.1:${port}`)).rejects.toMatchObject({ code });
  });
});
