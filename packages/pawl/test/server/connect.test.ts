import { execFile } from 'node:child_process';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { WebSocketServer } from 'ws';
import { open } from '../../src/client/open.ts';
import { connect } from '../../src/client/remote/connect.ts';
import { MemoryStore, memoryEngine, memoryGuarantees } from '../../src/engines/memory/index.ts';
import type { PawlError } from '../../src/errors.ts';
import { client, running } from './setup.ts';

const code = (value: string) => expect.objectContaining({ code: value });

it('a lock over a real connection: acquire, wait, hand over, release', async () => {
  const { server } = await running();
  const [a, b] = [await client(server.url), await client(server.url)];
  const first = await a.acquire('x');
  const waiting = b.acquire('x');
  await first.release();
  const second = await waiting;
  expect(second.token).toBeGreaterThan(first.token);
  expect(await a.tryAcquire('x')).toBeNull();
  await second.release();
  expect(a.guarantees).toEqual(memoryEngine().guarantees);
});

it('lists in pages, and tells all of a lock', async () => {
  const { server } = await running();
  const pawl = await client(server.url);
  await Promise.all(Array.from({ length: 250 }, (_, i) => pawl.acquire(`l/${String(i).padStart(3, '0')}`)));
  const names = [];
  for await (const { name } of pawl.list('l/')) names.push(name);
  expect(names).toHaveLength(250);
  expect(names).toEqual([...names].sort());
  const state = await pawl.inspect('l/007');
  expect(state.holders[0]?.token).toBeTypeOf('bigint');
  expect(state.holders[0]?.owner).toMatchObject({ pid: String(process.pid) });
});

async function failure(attempt: Promise<object>): Promise<PawlError> {
  return attempt.then(
    () => Promise.reject(new Error('It was expected to fail and did not.')),
    (error: PawlError) => error,
  );
}

it('C5: errors come back as the same classes with the same fields', async () => {
  const store = new MemoryStore();
  const local = open(memoryEngine({ store }), { maxWaiters: 1 });
  const { server } = await running({ engine: memoryEngine({ store }), limits: { waitersPerLock: 1 } });
  const remote = await client(server.url);
  const held = await local.acquire('x');
  const waiting = local.acquire('x');
  waiting.catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 20));
  await local.semaphore('s', 2).acquire();
  const attempts: ((pawl: typeof local) => Promise<object>)[] = [
    (pawl) => pawl.acquire('x', { waitMs: 0 }),
    (pawl) => pawl.acquire('x'),
    (pawl) => pawl.acquire('s'),
    async (pawl) => ({ void: await pawl.breakLock('x', { token: held.token + 999n, reason: 'no' }) }),
  ];
  for (const attempt of attempts) {
    const [there, here] = [await failure(attempt(remote)), await failure(attempt(local))];
    expect({ ...there }).toEqual({ ...here });
    expect([there.name, there.message]).toEqual([here.name, here.message]);
    expect(there.constructor).toBe(here.constructor);
    expect(there.stack).toContain(there.message);
  }
  await local.close();
});

it.each(['', 'localhost:7295', 'ftp://h', 'http://user:pw@h', 'http://h?x', 5])(
  'refuses the URL %j',
  async (url) => {
    await expect(connect(url as string)).rejects.toThrow(code('PAWL_INVALID_ARGUMENT'));
  },
);

it('L5: a server that cannot be reached is never "held"', async () => {
  const { server } = await running();
  const pawl = await client(server.url);
  await server.close();
  await new Promise((resolve) => setTimeout(resolve, 100));
  await expect(pawl.tryAcquire('x')).rejects.toThrow(
    expect.objectContaining({ code: 'PAWL_ENGINE_UNAVAILABLE', outcome: 'definite' }),
  );
  await expect(connect(server.url)).rejects.toThrow(code('PAWL_ENGINE_UNAVAILABLE'));
}, 30_000);

it('a process that has nothing left to do ends, although it is connected', async () => {
  const { server } = await running();
  const program = fileURLToPath(new URL('./client-child.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program, server.url]);
  expect(stdout).toMatch(/^\d+$/);
});

it('a process that has closed its client ends, although the server does not say goodbye', async () => {
  const deaf = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  onTestFinished(() => {
    for (const each of deaf.clients) each.terminate();
    deaf.close();
  });
  const limits = { frameBytes: 1024, messagesPerFrame: 10, requestsInFlight: 10 };
  deaf.on('connection', (each) => {
    each.send(JSON.stringify([{ event: 'hello', guarantees: memoryGuarantees, limits }]));
    each.pause();
  });
  await new Promise((resolve) => deaf.once('listening', resolve));
  const program = fileURLToPath(new URL('./closing-child.ts', import.meta.url));
  const { port } = deaf.address() as AddressInfo;
  // Half of what it would take by the library of the sockets.
  const limit = { timeout: 15_000 };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [program, `http://127.0.0.1:${port}`],
    limit,
  );
  expect(stdout).toBe('closed');
}, 30_000);
