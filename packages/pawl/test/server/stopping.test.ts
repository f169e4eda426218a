import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { open } from '../../src/client/open.ts';
import { MemoryStore, memoryEngine } from '../../src/engines/memory/index.ts';
import { sqliteEngine } from '../../src/engines/sqlite/index.ts';
import { renewSessions } from '../../src/server/renewal.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { ask, client, greeted, running, until } from './setup.ts';

const program = fileURLToPath(new URL('./server-child.ts', import.meta.url));
const children = new Set<ChildProcess>();
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-server-'));
});
afterEach(async () => {
  for (const child of children) await kill(child);
  rmSync(folder, { recursive: true, force: true });
});

describe('a server that stops', () => {
  it('S9: sends its clients on; leases, waiters and what is under way go on at another', async () => {
    const store = new MemoryStore();
    const [one, two] = [
      await running({ engine: memoryEngine({ store }), graceMs: 2000 }),
      await running({ engine: memoryEngine({ store }) }),
    ];
    const urls = [one.server.url, two.server.url];
    const [a, b] = [await client(urls), await client(urls)];
    const lost: unknown[] = [];
    for (const pawl of [a, b]) pawl.on('renewFailed', (event) => lost.push(event));
    const held = await a.acquire('x', { ttlMs: 3000 });
    const waiting = b.acquire('x', { ttlMs: 3000 });
    await until(async () => (await a.inspect('x')).waiting === 1);
    let done = 0;
    let stop = false;
    const busy = (async () => {
      while (!stop) {
        await (await a.acquire('y', { ttlMs: 3000 })).release();
        done += 1;
      }
    })();
    await until(() => done > 3);
    await one.server.close();
    const before = done;
    await until(() => done > before + 3);
    stop = true;
    await busy;
    expect(held.held).toBe(true);
    await held.release();
    const second = await waiting;
    expect(second.token).toBeGreaterThan(held.token);
    expect(lost).toEqual([]);
    expect(one.entries.map(({ event }) => event)).toEqual(
      expect.arrayContaining(['listening', 'stopping', 'stopped']),
    );
  });

  it('says goodbye, is not ready any more, and closes what does not go', async () => {
    const { server } = await running({ graceMs: 300 });
    const raw = await greeted(server.url);
    const pawl = await client(server.url);
    const holder = (await ask(server.url, 'POST', '/v1/sessions', { ttlMs: 60_000 })).body.session;
    await ask(server.url, 'POST', '/v1/locks/x/acquire', { session: holder, request: 'h' });
    const { session } = (await ask(server.url, 'POST', '/v1/sessions', { ttlMs: 5000 })).body;
    const polling = ask(server.url, 'POST', '/v1/locks/x/acquire', { session, request: 'r', waitMs: 20_000 });
    await until(async () => (await pawl.inspect('x')).waiting === 1);
    const watch = await fetch(`${server.url}/v1/locks/x/watch`);
    const watching = watch.text();
    const closing = server.close();
    await raw.find(({ event }) => event === 'goaway');
    raw.send({ id: 1, method: 'inspect', params: { name: 'x' } });
    expect(await raw.answer(1)).toMatchObject({ result: { waiting: 1 } });
    expect(await polling).toMatchObject({ status: 503, body: { code: 'PAWL_CLOSED' } });
    expect(await watching).toContain('"waiting":1');
    expect(await raw.closed).toMatchObject({ code: 1001 });
    await closing;
    await server.close();
    await expect(fetch(`${server.url}/livez`)).rejects.toThrow();
  });

  it('leaves sessions alive at the engine', async () => {
    const store = new MemoryStore();
    const engine = memoryEngine({ store });
    const { server } = await running({ engine });
    const { session } = (await ask(server.url, 'POST', '/v1/sessions', { ttlMs: 60_000 })).body;
    const granted = await ask(server.url, 'POST', '/v1/locks/x/acquire', { session, request: 'r' });
    await server.close();
    const next = await running({ engine });
    const again = await ask(next.server.url, 'POST', '/v1/locks/x/acquire', { session, request: 'r' });
    expect(again.body.token).toBe(granted.body.token);
  });
});

describe('a server that starts', () => {
  it('gives every live session its whole TTL again, and no token falls', async () => {
    const clock = new SimulatedClock();
    const engine = memoryEngine({ clock });
    const pawl = open(engine, { clock: new SimulatedClock() });
    const lease = await pawl.acquire('x', { ttlMs: 3000 });
    await engine.openSession('dead', 10);
    await clock.advance(2900);
    expect(await renewSessions(engine)).toBe(1);
    await clock.advance(2900);
    const other = open(engine, { clock });
    expect((await other.inspect('x')).holders.map(({ token }) => token)).toEqual([lease.token]);
    expect(await other.tryAcquire('x')).toBeNull();
    await other.close();
    await pawl.close();
    await engine.close();
  });
});

describe('a server that is killed', () => {
  it('S1, S5: costs its clients a reconnect: leases live on, waiters keep their places, nothing is granted twice', async () => {
    const path = join(folder, 'locks.db');
    let child = await start(path);
    const { url } = child;
    const port = new URL(url).port;
    const [a, b] = [await client(url), await client(url)];
    const held = await a.acquire('held', { ttlMs: 60_000 });
    const waiting = b.acquire('held', { ttlMs: 60_000 });
    const tokens: bigint[] = [];
    let inside = 0;
    let stop = false;
    const workers = [a, b, a, b].map(async (pawl) => {
      while (!stop) {
        const lease = await pawl.acquire('x', { ttlMs: 60_000 });
        inside += 1;
        expect(inside).toBe(1);
        tokens.push(lease.token);
        inside -= 1;
        await lease.release();
      }
    });
    for (let round = 0; round < 4; round += 1) {
      const before = tokens.length;
      await until(() => tokens.length > before + 20);
      await kill(child.process);
      child = await start(path, port);
    }
    const before = tokens.length;
    await until(() => tokens.length > before + 20);
    stop = true;
    await Promise.all(workers);
    expect(tokens).toEqual([...tokens].sort((x, y) => (x < y ? -1 : 1)));
    expect(new Set(tokens).size).toBe(tokens.length);
    expect(held.signal.aborted).toBe(false);
    await held.release();
    await (await waiting).release();
    expect(await a.inspect('x')).toMatchObject({ holders: [], waiting: 0 });
    await Promise.all([a.close(), b.close()]);
  }, 60_000);

  it('and its store goes on with another server, that had no part in it', async () => {
    const path = join(folder, 'locks.db');
    const child = await start(path);
    const engine = await sqliteEngine({ path });
    const { server } = await running({ engine });
    const pawl = await client([child.url, server.url]);
    const lease = await pawl.acquire('x', { ttlMs: 5000 });
    const other = await client(server.url);
    const waiting = other.acquire('x', { ttlMs: 5000 });
    await kill(child.process);
    await until(async () => (await pawl.inspect('x').catch(() => undefined))?.waiting === 1);
    expect(lease.held).toBe(true);
    await lease.release();
    expect((await waiting).token).toBeGreaterThan(lease.token);
    await other.close();
    await pawl.close();
    await server.close();
    await engine.close();
  }, 30_000);

  it('never comes near it through what hostile clients send: its memory stays bounded', async () => {
    const child = await start(join(folder, 'locks.db'));
    const pawl = await client(child.url);
    const lease = await pawl.acquire('mine', { ttlMs: 60_000 });
    const memory = () => {
      const status = readFileSync(`/proc/${child.process.pid}/status`, 'utf8');
      return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
    };
    const before = memory();
    let most = before;
    for (let round = 0; round < 5; round += 1) {
      const raws = await Promise.all(Array.from({ length: 40 }, () => greeted(child.url)));
      for (const [i, { socket }] of raws.entries()) {
        if (i % 4 === 0) socket.send('x'.repeat(50 * 1024 * 1024 * (i === 0 ? 1 : 0) + 1000));
        if (i % 4 === 1) socket.send(`[${'{},'.repeat(300_000)}`);
        if (i % 4 === 2) {
          socket.pause();
          for (let n = 0; n < 500; n += 1)
            socket.send(JSON.stringify([{ id: n, method: 'inspect', params: { name: 'mine' } }]));
        }
        if (i % 4 === 3) {
          for (let n = 0; n < 200; n += 1) {
            const params = { session: `s${n}`, request: 'r', locks: [{ name: `flood${n}` }], wait: true };
            socket.send(JSON.stringify([{ id: n, method: 'acquire', params }]));
          }
        }
      }
      // On a busy machine an answer may take longer than a client waits for it; what matters is that one comes.
      await until(() => pawl.withLock('again', () => true).catch(() => false));
      most = Math.max(most, memory());
      for (const { socket } of raws) socket.terminate();
    }
    // What the limits allow: for each connection one frame that comes, and 8 MB that go.
    expect(most - before).toBeLessThan(40 * (1 + 8));
    expect(lease.held).toBe(true);
    expect(child.process.exitCode).toBeNull();
    await pawl.close();
  }, 60_000);
});

async function start(path: string, port = '0'): Promise<{ url: string; process: ChildProcess }> {
  const child = spawn(process.execPath, [program, path, port], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.add(child);
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (chunk) => resolve(String(chunk).trim()));
    child.once('exit', (status) => reject(new Error(`the server ended with ${status}`)));
  });
  return { url, process: child };
}

async function kill(child: ChildProcess): Promise<void> {
  children.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}
