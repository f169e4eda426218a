import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sqliteEngine } from '../../src/engines/sqlite/index.ts';
import { MAX_TOKEN } from '../../src/token.ts';
import { newPath, open, put, until, write } from './sqlite-fixture.ts';

/** Takes the write lock, as another process might. */
function lockOut(path: string): { release(): void } {
  const db = new DatabaseSync(path);
  onTestFinished(() => db.close());
  db.exec('BEGIN IMMEDIATE');
  return { release: () => db.exec('ROLLBACK') };
}

describe('the SQLite store', () => {
  it('gives back every text as it was put, and finds what stands at every key', async () => {
    const path = newPath();
    const [engine, other] = [await open(path), await open(path)];
    const text = fc.string({ unit: 'binary' });
    const check = fc.asyncProperty(text, text, async (key, value) => {
      const version = await put(engine, key, value);
      const { entries } = await engine.read({ keys: [key], ranges: [] });
      expect(entries.get(key)).toMatchObject({ key, value });
      const listed = await engine.list(key, 1);
      expect(listed[0]).toMatchObject({ key, value });
      const taken = write({ guards: [{ key, version }], deletes: [key] });
      const results = [...(await other.commit([taken])), ...(await engine.commit([taken]))];
      expect(results.map(({ kind }) => kind)).toEqual(['committed', 'conflict']);
    });
    await fc.assert(check, {
      numRuns: 100,
      examples: [
        ['', ''],
        ['\0', 'a\0b'],
        ['\uFEFFkey', '\uFEFF'],
      ],
    });
  });

  it('takes half a surrogate pair for U+FFFD wherever it is named', async () => {
    const path = newPath();
    const [engine, other] = [await open(path), await open(path)];
    const [half, whole] = ['key/\uD800', 'key/\uFFFD'];
    const version = await put(engine, half, half);
    for (const listed of [await engine.list('', 2), await engine.list(half, 2)])
      expect(listed).toEqual([{ key: whole, value: whole, version }]);
    const { entries } = await engine.read({ keys: [half], ranges: [] });
    expect(entries.get(half)).toEqual({ key: half, value: whole, version });
    const results = await other.commit([write({ guards: [{ key: whole, version }], deletes: [half] })]);
    expect(results.map(({ kind }) => kind)).toEqual(['committed']);
    expect(await engine.list('', 1)).toEqual([]);
  });

  it('lists by prefix in the order of bytes, page by page', async () => {
    const engine = await open(newPath());
    const keys = ['a', 'a\0', 'a/', 'a/\u{1F600}', 'a/\uFFFF', 'a/b', 'a\u{10FFFF}', 'b', ''];
    await engine.commit([write({ puts: keys.map((key) => ({ key, value: key })) })]);
    const inOrder = [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    for (const prefix of ['', 'a', 'a/', 'c']) {
      const listed: string[] = [];
      for (;;) {
        const page = await engine.list(prefix, 2, listed.at(-1));
        listed.push(...page.map(({ key }) => key));
        if (page.length < 2) break;
      }
      expect(listed).toEqual(inOrder.filter((key) => key.startsWith(prefix)));
    }
  });

  it('S1: goes on from the highest version, and ends before it would repeat one', async () => {
    const engine = await open(newPath());
    expect(await engine.raiseVersion(MAX_TOKEN - 2n)).toBe(0n);
    expect(await engine.raiseVersion(5n)).toBe(MAX_TOKEN - 2n);
    expect(await put(engine, 'key', 'value')).toBe(MAX_TOKEN - 1n);
    expect(await put(engine, 'key', 'value')).toBe(MAX_TOKEN);
    await expect(put(engine, 'key', 'value')).rejects.toMatchObject({ code: 'PAWL_STORE_UNUSABLE' });
    const { entries } = await engine.read({ keys: ['key'], ranges: [] });
    expect(entries.get('key')?.version).toBe(MAX_TOKEN);
  });

  it.each([-1n, 0n, MAX_TOKEN, 2n ** 70n])('S1: cannot be raised to %s', async (version) => {
    const engine = await open(newPath());
    await expect(engine.raiseVersion(version)).rejects.toMatchObject({ code: 'PAWL_INVALID_ARGUMENT' });
  });

  it('puts what comes in at once into one transaction, in order', async () => {
    const path = newPath();
    const engine = await open(path);
    const watcher = new DatabaseSync(path);
    const dataVersion = () => Number(watcher.prepare('PRAGMA data_version').get()?.data_version);
    const before = dataVersion();
    const versions = await Promise.all(Array.from({ length: 100 }, (_, i) => put(engine, `key/${i}`, '')));
    expect(versions).toEqual(Array.from({ length: 100 }, (_, i) => BigInt(i + 1)));
    expect(dataVersion()).toBe(before + 1);
    watcher.close();
  });

  it('L5: says who is in the way when another process keeps the write lock', async () => {
    const path = newPath();
    const engine = await open(path, { busyTimeoutMs: 30 });
    const { release } = lockOut(path);
    const [writing, session] = [put(engine, 'key', 'value'), engine.openSession('session', 1000)];
    for (const call of [writing, session]) {
      await expect(call).rejects.toMatchObject({
        code: 'PAWL_ENGINE_UNAVAILABLE',
        outcome: 'definite',
        message: expect.stringContaining('was locked by another process for 30 ms'),
      });
    }
    expect((await engine.read({ keys: ['key'], ranges: [] })).entries.size).toBe(0);
    release();
    expect(await put(engine, 'key', 'value')).toBe(1n);
  });

  it('waits for the write lock without blocking the event loop', async () => {
    const path = newPath();
    const engine = await open(path);
    const { release } = lockOut(path);
    let done = false;
    const writing = put(engine, 'key', 'value').finally(() => {
      done = true;
    });
    let turns = 0;
    await until(() => {
      turns += 1;
      return turns > 20;
    });
    expect(done).toBe(false);
    release();
    expect(await writing).toBe(1n);
  });

  it('lets the event loop turn, however much is read', async () => {
    const engine = await open(newPath());
    let fired = false;
    setTimeout(() => {
      fired = true;
    }, 1);
    let reads = 0;
    for (; !fired && reads < 100_000; reads++) await engine.read({ keys: ['key'], ranges: [] });
    expect(reads).toBeLessThan(100_000);
  });

  it('delivers wakes to inboxes of its own process, and of other engines on the same file', async () => {
    const path = newPath();
    const [one, two] = [await open(path), await open(path)];
    const heard: string[] = [];
    one.subscribe('one', (message, version) => heard.push(`one ${message} ${version}`));
    const stop = two.subscribe('two', (message, version) => heard.push(`two ${message} ${version}`));
    const wakes = [
      { inbox: 'one', message: 'a\0' },
      { inbox: 'two', message: 'b' },
    ];
    await one.commit([write({ puts: [{ key: 'key', value: '' }], wakes })]);
    await until(() => heard.length === 2);
    expect(heard.toSorted()).toEqual(['one a\0 1', 'two b 1']);
    stop();
    await one.commit([write({ wakes })]);
    await until(() => heard.length === 3);
    expect(heard.at(-1)).toBe('one a\0 1');
  });

  it('delivers no wakes of a write that did not happen, nor ones from before the subscription', async () => {
    const path = newPath();
    const [one, two] = [await open(path), await open(path)];
    const wakes = [{ inbox: 'inbox', message: 'early' }];
    await one.commit([write({ wakes })]);
    const heard: string[] = [];
    two.subscribe('inbox', (message) => heard.push(message));
    const refused = await one.commit([
      write({ guards: [{ key: 'absent', version: 7n }], wakes: [{ inbox: 'inbox', message: 'refused' }] }),
      write({ wakes: [{ inbox: 'inbox', message: 'late' }] }),
    ]);
    expect(refused.map(({ kind }) => kind)).toEqual(['conflict', 'committed']);
    await until(() => heard.length > 0);
    expect(heard).toEqual(['late']);
  });

  it('is closed for good', async () => {
    const engine = await sqliteEngine({ path: newPath() });
    const late = put(engine, 'key', 'value');
    const [closing] = [engine.close(), engine.close()];
    await expect(late).rejects.toMatchObject({ code: 'PAWL_CLOSED', outcome: 'definite' });
    await closing;
    const calls = [
      () => engine.read({ keys: [], ranges: [] }),
      () => engine.list('', 1),
      () => engine.commit([]),
      () => engine.openSession('session', 1000),
      () => engine.keepAlive([]),
      () => engine.endSession('session'),
      () => engine.forgetSessions([]),
      () => engine.raiseVersion(1n),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'PAWL_CLOSED' });
    expect(() => engine.subscribe('inbox', () => {})).toThrow(
      expect.objectContaining({ code: 'PAWL_CLOSED' }),
    );
    expect(() => engine.watchEndings(() => {})).toThrow(expect.objectContaining({ code: 'PAWL_CLOSED' }));
  });
});
