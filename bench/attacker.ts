/** A hostile client in a process of its own: attacks the server at `argv[3]` in the way `argv[2]` until it is killed. */
import { connect as connectTcp, type Socket } from 'node:net';
import { WebSocket } from 'ws';

const CONNECTIONS = 10_000;
/** Connections that attack at the same time in all other ways. */
const AT_ONCE = 16;

const [, , way = '', url = ''] = process.argv;
const { port } = new URL(url);

const ways: Record<string, () => Promise<unknown>> = {
  garbage: () => opened((socket) => socket.send('xxx')),
  'ids used twice': () =>
    opened((socket) => socket.send('[{"id":1,"method":"ping"},{"id":1,"method":"inspect"}]')),
  'frames of 100 MB': () => handshaken((socket) => socket.write(header(100 * 1024 * 1024))),
  'half frames': () => handshaken((socket) => socket.write(header(1000).subarray(0, 60))),
  'no reading': () =>
    opened((socket) => {
      socket.pause();
      flood(socket, 200, (id) => ({ id, method: 'inspect', params: { name: '../<b>&amp;' } }));
    }),
  'a flood of acquires': () =>
    opened((socket) =>
      flood(socket, 1000, (id) => ({
        id,
        method: 'acquire',
        params: { session: `s${id % 50}`, request: `${id}`, locks: [{ name: '../<script>' }], wait: true },
      })),
    ),
  '10,000 connections': async () => {
    for (let i = 0; i < CONNECTIONS; i += 1) {
      connectTcp(Number(port), '127.0.0.1').on('error', () => {});
      if (i % 50 === 0) await pause(1);
    }
    await pause(60_000);
  },
};

const attack = ways[way];
if (attack === undefined)
  throw new Error(`There is no such way: ${way}. These are: ${Object.keys(ways).join(', ')}`);
await Promise.all(
  Array.from({ length: way === '10,000 connections' ? 1 : AT_ONCE }, async () => {
    for (;;) await attack();
  }),
);

/** Opens a connection, misuses it, and waits until the server has enough of it, or a second. */
function opened(misuse: (socket: WebSocket) => void): Promise<unknown> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/session`, 'pawl.v1');
  socket.on('open', () => misuse(socket));
  socket.on('error', () => {});
  const closed = new Promise((resolve) => socket.on('close', resolve));
  return Promise.race([closed, pause(1000)]).finally(() => socket.terminate());
}

function handshaken(misuse: (socket: Socket) => void): Promise<unknown> {
  const socket = connectTcp(Number(port), '127.0.0.1');
  socket.write(
    `GET /v1/session HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: pawl.v1\r\n\r\n`,
  );
  socket.once('data', () => misuse(socket));
  socket.on('error', () => {});
  const closed = new Promise((resolve) => socket.on('close', resolve));
  return Promise.race([closed, pause(1000)]).finally(() => socket.destroy());
}

function flood(socket: WebSocket, count: number, message: (id: number) => object): void {
  for (let id = 0; id < count; id += 1) socket.send(JSON.stringify([message(id)]));
}

/** The head of a masked text frame of so many bytes, and a little of its content. */
function header(bytes: number): Buffer {
  const head = Buffer.alloc(1000, 0x78);
  head[0] = 0x81;
  head[1] = 0xff;
  head.writeBigUInt64BE(BigInt(bytes), 2);
  return head;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
