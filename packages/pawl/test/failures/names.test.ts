import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from '../../src/client/open.ts';
import type { Pawl } from '../../src/client/pawl.ts';
import { decodeName, encodeName } from '../../src/core/names.ts';
import { sqliteEngine } from '../../src/engines/sqlite/index.ts';
import { World } from '../client/world.ts';
import { ask, client, running } from '../server/setup.ts';

/** Each is a name of its own: forms of Unicode, cases, blanks, and what means something elsewhere. */
const NAMES = [
  '\u00e9',
  'e\u0301',
  'A',
  'a',
  'a ',
  ' a',
  '{a}',
  'a{b}c',
  '{}',
  '%2F',
  '%252F',
  '/',
  '../x',
  'a/b',
  'a:b',
  '\t',
  '\n',
  '\u0000',
  '😀',
  'x'.repeat(512),
];

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-names-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('names', () => {
  it('S2: are compared byte by byte, in one process, over a server, by HTTP and in a file alike', async () => {
    const engine = await sqliteEngine({ path: join(folder, 'names.db') });
    const { server } = await running({ engine });
    const [local, remote] = [open(engine), await client(server.url)];
    for (const [i, name] of NAMES.entries()) {
      const pawl: Pawl = i % 2 === 0 ? local : remote;
      expect(await pawl.tryAcquire(name)).not.toBeNull();
      expect(await (i % 2 === 0 ? remote : local).tryAcquire(name)).toBeNull();
    }
    for (const pawl of [local, remote]) {
      const listed: string[] = [];
      for await (const { name } of pawl.list()) listed.push(name);
      expect(listed.sort()).toEqual(NAMES.toSorted());
    }
    const { body } = await ask(server.url, 'GET', '/v1/locks?limit=500');
    const locks = body.locks as { name: string }[];
    expect(locks.map(({ name }) => name).sort()).toEqual(NAMES.toSorted());
    const { body: composed } = await ask(server.url, 'GET', `/v1/locks/${encodeURIComponent('\u00e9')}`);
    const { body: decomposed } = await ask(server.url, 'GET', `/v1/locks/${encodeURIComponent('e\u0301')}`);
    expect([composed.name, decomposed.name]).toEqual(['\u00e9', 'e\u0301']);
    for (const length of [513, 1024, 10_240]) {
      const name = 'x'.repeat(length);
      for (const pawl of [local, remote])
        await expect(pawl.acquire(name)).rejects.toThrow(/at most 512 bytes|more than 512/);
      expect(await ask(server.url, 'GET', `/v1/locks/${name}`)).toMatchObject({
        status: 400,
        body: { code: 'PAWL_INVALID_ARGUMENT' },
      });
    }
    await remote.close();
    await local.close();
    await server.close();
    await engine.close();
  });

  it('S2: 50,000 of them have as many keys, and each comes back from its key', () => {
    const keys = new Set<string>();
    let seed = 1;
    const next = () => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return seed;
    };
    const names = new Set<string>();
    while (names.size < 50_000) {
      const length = 1 + (next() % 6);
      let name = '';
      for (let i = 0; i < length; i += 1) name += String.fromCodePoint((next() >>> 8) % 0x2_ff);
      names.add(name);
    }
    let changed = 0;
    for (const name of names) {
      const key = encodeName(name);
      keys.add(key);
      if (decodeName(key) !== name) changed += 1;
    }
    expect([keys.size, changed]).toEqual([50_000, 0]);
  });

  it('S2: 2,000 locks are held at once, and no two stand in each other’s way', async () => {
    const world = new World();
    const { pawl } = world.process();
    const names = Array.from({ length: 2000 }, (_, i) => `tenant:${i % 40}/job:${i}`);
    const leases = await world.settle(Promise.all(names.map((name) => pawl.tryAcquire(name))));
    expect(leases.filter((lease) => lease?.held)).toHaveLength(2000);
  });

  it('S1: one that was locked and freed 1,000 times, broken, and opened again is free, and its tokens only rose', async () => {
    const path = join(folder, 'again.db');
    let engine = await sqliteEngine({ path });
    let pawl = open(engine);
    let highest = 0n;
    const take = async () => {
      const lease = await pawl.tryAcquire('x');
      expect(lease?.token).toBeGreaterThan(highest);
      highest = lease?.token ?? 0n;
      return lease;
    };
    for (let i = 0; i < 1000; i += 1) await (await take())?.release();
    await take();
    await pawl.breakLock('x', { token: highest, reason: 'test' });
    await (await take())?.release();
    await pawl.close();
    await engine.close();
    engine = await sqliteEngine({ path });
    pawl = open(engine);
    await (await take())?.release();
    await pawl.close();
    await engine.close();
  }, 60_000);
});
