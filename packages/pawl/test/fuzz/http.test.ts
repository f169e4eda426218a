import { request as httpRequest, type IncomingMessage, METHODS } from 'node:http';
import { connect as connectTcp } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ask, running } from '../server/setup.ts';
import { bystander, CODE } from './bystander.ts';
import { mutatedText } from './mutations.ts';
import { name, withSession } from './valid-calls.ts';

describe('a server that is asked anything at all', () => {
  it.each([
    ['no host', 'GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'PAWL_INVALID_ARGUMENT'],
    ['no HTTP', 'hello\r\n\r\n', 400, 'PAWL_INVALID_ARGUMENT'],
    ['an unknown method', 'STEAL /v1/locks HTTP/1.1\r\nHost: x\r\n\r\n', 400, 'PAWL_INVALID_ARGUMENT'],
    [
      'a length that is none',
      'GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
      400,
      'PAWL_INVALID_ARGUMENT',
    ],
    [
      'a broken chunk',
      'POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
      400,
      'PAWL_INVALID_ARGUMENT',
    ],
    [
      'endless headers',
      `GET /livez HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
      431,
      'PAWL_LIMIT',
    ],
  ])('by TCP, %s is answered with a code, and the connection closed', async (_what, sent, status, code) => {
    const { server } = await running();
    const socket = connectTcp(server.port, '127.0.0.1');
    let heard = '';
    socket.on('data', (chunk) => {
      heard += String(chunk);
    });
    socket.on('error', () => {});
    socket.write(sent);
    await new Promise((resolve) => socket.once('close', resolve));
    const [head = ''] = heard.split('\r\n\r\n');
    // It may come in chunks.
    const [problem = ''] = /\{.*\}/s.exec(heard) ?? [];
    expect(head).toContain(`HTTP/1.1 ${status} `);
    expect(head).toContain('application/problem+json');
    expect(JSON.parse(problem)).toMatchObject({ status, code });
  });

  it("by HTTP: answers with a code and a status of the client's fault, and goes on with others", async () => {
    const { server, entries } = await running();
    const goesOn = await bystander(server.url);
    const session = String((await ask(server.url, 'POST', '/v1/sessions', { ttlMs: 600_000 })).body.session);
    let [answered, refused] = [0, 0];
    await fc.assert(
      fc.asyncProperty(asked, async (each) => {
        const { status, type, text } = await answerTo(server.port, {
          ...each,
          path: withSession(each.path, session),
          body: withSession(each.body, session),
        });
        if (status < 400) {
          answered += 1;
          return;
        }
        refused += 1;
        expect([status, text]).toEqual([expect.toSatisfy((code: number) => code < 500), expect.any(String)]);
        if (each.method === 'HEAD') return;
        expect(type).toBe('application/problem+json');
        expect(JSON.parse(text)).toMatchObject({
          status,
          code: expect.stringMatching(CODE),
          detail: expect.any(String),
        });
      }),
      { numRuns: 150 },
    );
    expect(Math.min(answered, refused)).toBeGreaterThan(10);
    await goesOn();
    expect(entries.filter(({ level }) => level === 'error')).toEqual([]);
  });
});

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const part = fc.oneof(
  fc.constantFrom(
    'v1',
    'locks',
    'sessions',
    'a',
    'b',
    'acquire',
    'release',
    'break',
    'watch',
    'keepalive',
    'session',
    '',
  ),
  fc.constantFrom(
    'SESSION',
    'livez',
    'readyz',
    'metrics',
    'openapi.json',
    '..',
    '%',
    '%zz',
    '%ff',
    '%00',
    '%2F',
    '__proto__',
  ),
  name.map(encodeURIComponent),
);
const route = fc.oneof(
  fc.constantFrom(
    '/v1/locks',
    '/v1/locks/a',
    '/v1/sessions',
    '/v1/sessions/SESSION/keepalive',
    '/v1/sessions/none',
  ),
  fc.constantFrom('/v1/locks/a/acquire', '/v1/locks/a/release', '/v1/locks/a/break', '/v1/locks/b/acquire'),
  fc.array(part, { maxLength: 5 }).map((parts) => `/${parts.join('/')}`),
);
const query = fc.oneof(
  fc.constant(''),
  fc.constant(''),
  fc.constantFrom(
    '?limit=5',
    '?limit=-1',
    '?limit=x',
    '?limit=1&limit=2',
    '?prefix=%ff',
    '?after=a&prefix=a',
    '?__proto__=1',
    '?%',
    '?=',
  ),
  fc.string({ maxLength: 9 }).map((text) => `?${encodeURIComponent(text)}`),
);
const field = {
  session: fc.constantFrom('SESSION', 'none'),
  request: fc.constantFrom('r1', 'r2'),
  token: fc.bigInt({ min: 1n, max: 99n }).map(String),
  ttlMs: fc.integer({ min: 1, max: 60_000 }),
  reason: fc.string(),
  lockDelayMs: fc.nat(1000),
  mode: fc.constantFrom('exclusive', 'shared'),
  permits: fc.constantFrom(null, 1, 5),
};
const body = fc.oneof(
  { weight: 3, arbitrary: fc.record(field, { requiredKeys: [] }).map((each) => JSON.stringify(each)) },
  { weight: 2, arbitrary: mutatedText(fc.record(field)) },
  { weight: 1, arbitrary: fc.constantFrom('', '[]', '{', 'null', `{"session":"${'x'.repeat(70_000)}"}`) },
);
const headers = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ 'content-type': 'application/json' }) },
  {
    weight: 2,
    arbitrary: fc.dictionary(
      fc.constantFrom(
        'content-type',
        'origin',
        'host',
        'authorization',
        'accept',
        'expect',
        'upgrade',
        'range',
        'cookie',
        'x-y',
      ),
      fc.oneof(
        fc.constantFrom(
          'application/json',
          'text/plain',
          'null',
          'http://evil.example',
          '100-continue',
          'websocket',
          'Bearer x',
          '',
        ),
        fc.stringMatching(/^[!-~]{0,12}$/),
      ),
      { maxKeys: 4 },
    ),
  },
);
/** Between them some that make sense, so that there is something that the others can disturb. */
const sensible: fc.Arbitrary<Asked> = fc
  .constantFrom(
    ['GET', '/v1/locks', {}],
    ['GET', '/livez', {}],
    ['POST', '/v1/sessions', { ttlMs: 1000 }],
    ['POST', '/v1/sessions/SESSION/keepalive', {}],
    ['POST', '/v1/locks/a/acquire', { session: 'SESSION', request: 'r1' }],
    ['GET', '/v1/locks/a', {}],
  )
  .map(([method, path, sent]) => ({
    method: String(method),
    path: String(path),
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(sent),
  }));
const asked: fc.Arbitrary<Asked> = fc.oneof(
  { weight: 1, arbitrary: sensible },
  {
    weight: 4,
    arbitrary: fc.record({
      // CONNECT names no path: a server that is no proxy closes the connection.
      method: fc.oneof(
        fc.constantFrom('GET', 'POST', 'DELETE'),
        fc.constantFrom(...METHODS.filter((each) => each !== 'CONNECT')),
      ),
      path: fc.tuple(route, query).map((parts) => parts.join('')),
      headers,
      body,
    }),
  },
);

function answerTo(
  port: number,
  { method, path, headers: sent, body: text }: Asked,
): Promise<{ status: number; type: string; text: string }> {
  return new Promise((resolve, reject) => {
    const bare = method === 'GET' || method === 'HEAD';
    const length = bare ? {} : { 'content-length': String(Buffer.byteLength(text)) };
    const sending = httpRequest({ port, method, path, headers: { ...sent, ...length }, agent: false });
    const hear = (response: IncomingMessage) => {
      const { statusCode: status = 0 } = response;
      const type = response.headers['content-type'] ?? '';
      // A watch goes on for as long as anybody listens.
      if (type.includes('event-stream') || type.includes('ndjson')) {
        response.destroy();
        resolve({ status, type, text: '' });
        return;
      }
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => resolve({ status, type, text: Buffer.concat(chunks).toString() }));
      response.on('error', reject);
    };
    sending.on('response', hear);
    sending.on('upgrade', (response, socket) => {
      socket.destroy();
      hear(response);
    });
    sending.on('error', reject);
    sending.end(bare ? '' : text);
  });
}
