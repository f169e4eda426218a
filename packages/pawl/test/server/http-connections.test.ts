import { connect as connectTcp, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { ask, running, until } from './setup.ts';

/** A connection that never closes its side by itself, and what has come on it. */
function connected(port: number): { socket: Socket; text: () => string } {
  const socket = connectTcp({ port, host: '127.0.0.1', allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  return { socket, text: () => text };
}

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

// An older Node hands every upgrade to whoever listens for any.
it.runIf(major > 24 || (major === 24 && minor >= 9))(
  'a client that offers HTTP/2 besides is answered in HTTP/1.1',
  async () => {
    const { server } = await running();
    const { socket, text } = connected(server.port);
    const head = (line: string) =>
      `${line} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n`;
    socket.write(`${head('GET /v1/locks')}\r\n`);
    await until(() => text().includes('"locks":[]'));
    expect(text()).toMatch(/^HTTP\/1\.1 200 OK/);
    const body = '{"ttlMs": 5000}';
    socket.write(
      `${head('POST /v1/sessions')}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await until(() => text().includes('"session"'));
  },
);

it('a handshake that is refused leaves no connection, whether or not the client closes its side', async () => {
  const { server } = await running({ limits: { connections: 1 } });
  const { socket, text } = connected(server.port);
  const ended = new Promise((resolve) => socket.once('end', resolve));
  socket.write(
    'GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n',
  );
  await ended;
  expect(text()).toMatch(/^HTTP\/1\.1 404 /);
  await until(async () => (await ask(server.url, 'GET', '/livez').catch(() => undefined))?.status === 200);
});

it('a client that goes away in the middle of its request is no fault of the server', async () => {
  const { server, entries } = await running();
  for (const head of ['Content-Length: 100', 'Transfer-Encoding: chunked']) {
    const { socket } = connected(server.port);
    const sent = `POST /v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n${head}\r\n\r\n1`;
    await new Promise((resolve) => socket.write(sent, resolve));
    await until(async () => (await ask(server.url, 'GET', '/livez')).status === 200);
    socket.destroy();
  }
  const refused = async () =>
    String((await ask(server.url, 'GET', '/metrics')).body.text).match(
      /pawl_refused_total\{code="(\w+)"\} [1-9]/g,
    );
  await until(async () => (await refused()) !== null);
  expect(await refused()).toEqual([expect.stringContaining('PAWL_INVALID_ARGUMENT')]);
  expect(entries.filter(({ level }) => level === 'error')).toEqual([]);
});
