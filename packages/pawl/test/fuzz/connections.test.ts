import { connect as connectTcp } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { greeted, type RawSocket, running } from '../server/setup.ts';
import { bystander, CODE } from './bystander.ts';
import { anyJson, mutatedBytes, mutatedJson, mutatedText } from './mutations.ts';
import { message, withSession } from './valid-calls.ts';

/** Asks for a sign of life, behind everything that was sent. @returns whether the connection is still there. */
async function settled(raw: RawSocket): Promise<boolean> {
  const number = 1_000_000 + raw.messages.length;
  if (raw.socket.readyState !== WebSocket.OPEN) return false;
  raw.send({ id: number, method: 'ping' });
  return Promise.race([
    raw.answer(number).then(
      () => true,
      () => false,
    ),
    raw.closed.then(() => false),
  ]);
}

describe('a server that is sent anything at all', () => {
  it('by WebSocket: answers with a typed error, or cuts off with one, and goes on with others', async () => {
    const { server, entries } = await running();
    const goesOn = await bystander(server.url);
    const keeper = await greeted(server.url);
    const session = await keeper.session(600_000);
    const whole = fc.array(message, { maxLength: 6 });
    const frame = fc.oneof(
      {
        weight: 4,
        arbitrary: fc
          .array(fc.oneof(message, mutatedJson(message)), { maxLength: 6 })
          .map((each) => JSON.stringify(each)),
      },
      { weight: 1, arbitrary: mutatedText(whole) },
      { weight: 1, arbitrary: anyJson.map((each) => JSON.stringify(each)) },
    );
    let raw = await greeted(server.url);
    let [answered, refused, cut] = [0, 0, 0];
    const judge = (messages: readonly Record<string, unknown>[]) => {
      for (const { id, error, event } of messages) {
        if (error !== undefined) {
          expect(error).toMatchObject({ code: expect.stringMatching(CODE), message: expect.any(String) });
          refused += 1;
        } else if (event === undefined) {
          expect(Number.isSafeInteger(id)).toBe(true);
          answered += 1;
        }
      }
    };
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { minLength: 1, maxLength: 4 }), async (frames) => {
        for (const each of frames) raw.socket.send(withSession(each, session));
        const isOpen = await settled(raw);
        judge(raw.messages.splice(0));
        if (isOpen) return;
        cut += 1;
        // 4400: it is no message; 4429: too many sessions that are none; 4401: it said that it is somebody else.
        expect([4400, 4401, 4429]).toContain((await raw.closed).code);
        raw = await greeted(server.url);
      }),
      { numRuns: 60 },
    );
    expect(Math.min(answered, refused, cut)).toBeGreaterThan(10);
    await goesOn();
    expect(entries.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('by TCP: goes on with others whatever bytes come, before and after the handshake', async () => {
    const { server, entries } = await running();
    const goesOn = await bystander(server.url);
    const upgrade = Buffer.from(
      'GET /v1/session HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: pawl.v1\r\n\r\n',
    );
    const ping = Buffer.from('[{"id":1,"method":"ping"}]');
    const frame = Buffer.concat([Buffer.of(0x81, 0x80 | ping.length, 0, 0, 0, 0), ping]);
    const plain = Buffer.from(
      'POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}',
    );
    const bytes = fc.oneof(
      fc
        .tuple(fc.constant(upgrade), mutatedBytes(fc.constant<Uint8Array>(frame)))
        .map((parts) => Buffer.concat(parts)),
      mutatedBytes(fc.constantFrom<Uint8Array[]>(upgrade, plain)),
      fc.uint8Array({ maxLength: 60 }).map((each) => Buffer.from(each)),
    );
    await fc.assert(
      fc.asyncProperty(bytes, async (each) => {
        const socket = connectTcp(server.port, '127.0.0.1');
        let heard = '';
        socket.on('data', (chunk) => {
          heard += chunk.toString('latin1');
        });
        socket.on('error', () => {});
        const closed = new Promise((resolve) => socket.once('close', resolve));
        // Ended, so that it is answered at once rather than waited for.
        socket.end(each);
        await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 50))]);
        socket.destroy();
        for (const [, status = ''] of heard.matchAll(/^HTTP\/1\.1 (\d+) /gm)) {
          expect(Number(status)).toBeLessThan(500);
          if (Number(status) >= 400) expect(heard).toContain('"code":"PAWL_');
        }
      }),
      { numRuns: 60 },
    );
    await goesOn();
    expect(entries.filter(({ level }) => level === 'error')).toEqual([]);
  });
});
