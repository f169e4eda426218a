import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { memoryOnceStore, type OnceOptions, once, sqliteOnceStore } from '../../src/fences/once/index.ts';
import { SimulatedTime } from '../../src/testing/index.ts';

function setup() {
  const time = new SimulatedTime();
  return { time, store: memoryOnceStore(time.clock()) };
}

describe('an effect that is done once', () => {
  it('is done by the first, and everybody gets what came of it', async () => {
    const { store } = setup();
    const runs: unknown[] = [];
    const effect = (run: unknown) => {
      runs.push(run);
      return { n: runs.length };
    };
    for (const onCrash of ['refuse', 'repeat', 'refuse'] as const)
      expect(await once(store, 'k', effect, { onCrash })).toEqual({ n: 1 });
    expect(runs).toEqual([{ key: 'k', repeat: false }]);
  });

  it('is not begun by another while it is under way', async () => {
    const { store } = setup();
    const gate = Promise.withResolvers<number>();
    const first = once(store, 'k', () => gate.promise, { onCrash: 'refuse' });
    await expect(once(store, 'k', () => 2, { onCrash: 'repeat' })).rejects.toMatchObject({
      code: 'PAWL_ONCE_RUNNING',
    });
    gate.resolve(1);
    expect(await first).toBe(1);
  });

  it.each([
    ['refuse', false],
    ['repeat', true],
  ] as const)('that crashed is with onCrash "%s" done again: %s', async (onCrash, again) => {
    const { store, time } = setup();
    void once(store, 'k', () => new Promise(() => {}), { onCrash, runMs: 100 });
    await time.advance(100);
    const second = once(store, 'k', ({ repeat }) => `repeat ${repeat}`, { onCrash });
    if (again) expect(await second).toBe('repeat true');
    else await expect(second).rejects.toMatchObject({ code: 'PAWL_ONCE_UNFINISHED' });
  });

  it('that failed may be done again where it is to be repeated, or says that it did nothing', async () => {
    const failing = () => Promise.reject(new Error('failed'));
    for (const [options, again] of [
      [{ onCrash: 'repeat' }, true],
      [{ onCrash: 'refuse' }, false],
      [{ onCrash: 'refuse', didNothing: () => true }, true],
      [{ onCrash: 'refuse', didNothing: () => false }, false],
      [{ onCrash: 'repeat', didNothing: () => false }, true],
    ] as [OnceOptions, boolean][]) {
      const { store } = setup();
      await expect(once(store, 'k', failing, options)).rejects.toThrow('failed');
      const second = once(store, 'k', ({ repeat }) => repeat, { onCrash: 'refuse' });
      if (again) expect(await second).toBe(false);
      else await expect(second).rejects.toMatchObject({ code: 'PAWL_ONCE_UNFINISHED' });
    }
  });

  it('may come to nothing, to null, or to any JSON', async () => {
    const { store } = setup();
    for (const [key, value] of Object.entries({
      nothing: undefined,
      null: null,
      text: 'x',
      list: [1, { a: 2 }],
    }))
      for (const effect of [() => value, () => 'not again'])
        expect(await once<unknown>(store, key, effect, { onCrash: 'refuse' })).toEqual(value);
  });

  it('is refused where its key or an option is none, before the store is asked', async () => {
    const { store } = setup();
    const usage = (said: string) => ({ code: 'PAWL_FENCE_USAGE', message: expect.stringContaining(said) });
    const refused = (key: unknown, options: unknown) =>
      once(store, key as string, () => 1, options as OnceOptions).catch((error: unknown) => error);
    for (const options of [undefined, {}, { onCrash: 'ignore' }])
      expect(await refused('k', options)).toMatchObject(usage('onCrash must be "repeat"'));
    for (const wrong of [0, -1, 1.5, Number.NaN, '5'])
      for (const field of ['runMs', 'keepMs'])
        expect(await refused('k', { onCrash: 'refuse', [field]: wrong })).toMatchObject(
          usage('runMs and keepMs'),
        );
    for (const key of ['', 5])
      expect(await refused(key, { onCrash: 'refuse' })).toMatchObject(usage('not empty'));
    expect(await once(store, 'k', () => 7, { onCrash: 'refuse', runMs: 1, keepMs: 1 })).toBe(7);
  });

  it('is remembered for as long as it is to be kept', async () => {
    const { store, time } = setup();
    let n = 0;
    const next = () => once(store, 'k', () => ++n, { onCrash: 'refuse', keepMs: 50 });
    expect([await next(), await next()]).toEqual([1, 1]);
    await time.advance(50);
    expect(await next()).toBe(2);
  });
});

describe('the table of records in SQLite', () => {
  it('has a plain name, so that it is no SQL', () => {
    const db = new DatabaseSync(':memory:');
    for (const table of ['main.records', '_r1', 'a'.repeat(63)]) sqliteOnceStore(db, { table });
    for (const table of ['', '1a', 'a b', ' a', 'a;', 'a.', 'a.b.c', 'a.1b', 'a.b;', 'a'.repeat(64), 5])
      expect(() => sqliteOnceStore(db, { table: table as string }), String(table)).toThrow(
        expect.objectContaining({ code: 'PAWL_FENCE_USAGE', resource: String(table) }),
      );
    db.close();
  });

  it('tells what is unfinished, and forgets what has expired when it is told to', async () => {
    const db = new DatabaseSync(':memory:');
    const store = sqliteOnceStore(db);
    const hour = { runMs: 3_600_000, takeOver: false };
    for (const key of ['given up', 'under way', 'kept', 'expired'])
      await store.begin(key, `run of ${key}`, hour);
    await store.giveUp('given up', 'run of given up');
    await store.finish('kept', '1', undefined);
    await store.finish('expired', '1', -1);
    expect(store.unfinished()).toEqual([{ key: 'given up', run: 'run of given up' }]);
    store.deleteExpired();
    const keys = db.prepare('SELECT key FROM pawl_once ORDER BY key').all();
    expect(keys).toEqual([{ key: 'given up' }, { key: 'kept' }, { key: 'under way' }]);
    db.close();
  });
});
