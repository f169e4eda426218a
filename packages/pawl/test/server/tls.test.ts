import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { connect } from '../../src/client/remote/connect.ts';
import { hashToken } from '../../src/server/index.ts';
import { client, running } from './setup.ts';

/** Certificates of an authority of this test's own, good for 100 years and for nothing. */
const path = (name: string) => fileURLToPath(new URL(`./tls/${name}.pem`, import.meta.url));
const pem = (name: string) => readFileSync(path(name), 'utf8');

const tls = { cert: pem('server'), key: pem('server-key') };
const code = (value: string) => expect.objectContaining({ code: value });

it('TLS: a client that knows the authority connects, by texts or by files; another one does not', async () => {
  const { server } = await running({ tls });
  expect(server.url).toMatch(/^https:/);
  for (const ca of [pem('ca'), path('ca')]) {
    const pawl = await client(server.url, { tls: { ca } });
    await (await pawl.acquire('x')).release();
  }
  await expect(connect(server.url)).rejects.toThrow(code('PAWL_ENGINE_UNAVAILABLE'));
  await expect(connect(server.url.replace('https', 'http'))).rejects.toThrow(code('PAWL_ENGINE_UNAVAILABLE'));
}, 30_000);

it('a client certificate is enough to be let in, also from elsewhere; without one nobody is', async () => {
  const { server } = await running({ tls: { ...tls, clientCa: pem('ca') }, host: '0.0.0.0' });
  const url = `https://127.0.0.1:${server.port}`;
  const certified = { ca: pem('ca'), cert: path('client'), key: path('client-key') };
  const pawl = await client(url, { tls: certified });
  await (await pawl.acquire('x')).release();
  await expect(connect(url, { tls: { ca: pem('ca') } })).rejects.toThrow(code('PAWL_ENGINE_UNAVAILABLE'));
}, 30_000);

it('where both are asked for, the token says what the certified may do', async () => {
  const auth = [
    { name: 'app', sha256: hashToken('t'), permissions: [{ prefix: 'a', rights: ['acquire'] as const }] },
  ];
  const { server } = await running({ tls: { ...tls, clientCa: pem('ca') }, auth });
  const certified = { ca: pem('ca'), cert: pem('client'), key: pem('client-key') };
  const pawl = await client(server.url, { tls: certified, token: 't' });
  await (await pawl.acquire('a')).release();
  await expect(pawl.acquire('b')).rejects.toThrow(code('PAWL_FORBIDDEN'));
  await expect(connect(server.url, { tls: certified, token: 'u' })).rejects.toThrow(
    code('PAWL_UNAUTHENTICATED'),
  );
});
