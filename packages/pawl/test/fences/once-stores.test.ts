import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { stateOf } from '../../src/fences/once/found.ts';
import { memoryOnceStore, type OnceStore, once, sqliteOnceStore } from '../../src/fences/once/index.ts';
import { SimulatedTime } from '../../src/testing/index.ts';

const stores: [string, () => OnceStore][] = [
  ['in memory', () => memoryOnceStore(new SimulatedTime().clock())],
  ['in SQLite', () => sqliteOnceStore(new DatabaseSync(':memory:'))],
  [
    'in SQLite, with numbers read as bigints',
    () => sqliteOnceStore(new DatabaseSync(':memory:', { readBigInts: true })),
  ],
];
const hour = { runMs: 3_600_000, takeOver: false };

describe.each(stores)('the records of once %s', (_where, make) => {
  it('a run that was given up or forgotten by another run goes on as before', async () => {
    const store = make();
    expect(await store.begin('k', 'one', hour)).toEqual({ state: 'begun', repeat: false });
    await store.forget('k', 'other');
    await store.giveUp('k', 'other');
    await store.giveUp('unknown', 'one');
    await store.forget('unknown', 'one');
    expect(await store.begin('k', 'two', hour)).toEqual({ state: 'running' });
  });

  it('a run that gave up is unfinished at once, and only who takes over begins again', async () => {
    const store = make();
    await store.begin('k', 'one', hour);
    await store.giveUp('k', 'one');
    expect(await store.begin('k', 'two', hour)).toEqual({ state: 'unfinished', run: 'one' });
    expect(await store.begin('k', 'two', { ...hour, takeOver: true })).toEqual({
      state: 'begun',
      repeat: true,
    });
    // The first run has no say any more.
    await store.giveUp('k', 'one');
    await store.forget('k', 'one');
    expect(await store.begin('k', 'three', { ...hour, takeOver: true })).toEqual({ state: 'running' });
  });

  it('a run that is forgotten never was', async () => {
    const store = make();
    await store.begin('k', 'one', hour);
    await store.forget('k', 'one');
    expect(await store.begin('k', 'two', hour)).toEqual({ state: 'begun', repeat: false });
  });

  it('the first value that is recorded stays, and giving up or forgetting comes too late', async () => {
    const store = make();
    await store.begin('k', 'one', hour);
    expect(await store.finish('k', '1', undefined)).toBe('1');
    expect(await store.finish('k', '2', undefined)).toBe('1');
    await store.forget('k', 'one');
    await store.giveUp('k', 'one');
    expect(await store.begin('k', 'two', { ...hour, takeOver: true })).toEqual({ state: 'done', value: '1' });
  });

  it('a value is recorded also where the record of its run is gone', async () => {
    const store = make();
    await store.begin('k', 'one', hour);
    await store.forget('k', 'one');
    expect(await store.finish('k', '1', undefined)).toBe('1');
    expect(await store.begin('k', 'two', hour)).toEqual({ state: 'done', value: '1' });
  });
});

describe('time', () => {
  it('a store in memory says what is unfinished, and forgets what has expired when it is told to', async () => {
    const time = new SimulatedTime();
    const store = memoryOnceStore(time.clock());
    await once(store, 'short', () => 1, { onCrash: 'repeat', keepMs: 100 });
    await once(store, 'for ever', () => 1, { onCrash: 'repeat' });
    await store.begin('begun', 'x', { runMs: 100, takeOver: false });
    expect(store.unfinished()).toEqual([]);
    await time.advance(100);
    expect(store.unfinished()).toEqual([{ key: 'begun', run: 'x' }]);
    store.deleteExpired();
    // A record that is gone is one that anybody may finish; one that is not says what was recorded.
    expect(await store.finish('for ever', '2', undefined)).toBe('1');
    expect(await store.finish('short', '2', undefined)).toBe('2');
    expect(store.unfinished()).toEqual([{ key: 'begun', run: 'x' }]);
  });

  it('a run is over at its limit, and a record at its end, in a store in memory', async () => {
    const time = new SimulatedTime();
    const store = memoryOnceStore(time.clock());
    await store.begin('k', 'one', { runMs: 100, takeOver: false });
    await time.advance(99);
    expect(await store.begin('k', 'two', hour)).toEqual({ state: 'running' });
    await time.advance(1);
    expect(await store.begin('k', 'two', hour)).toEqual({ state: 'unfinished', run: 'one' });
    await store.finish('k', '1', 50);
    await time.advance(49);
    expect(await store.begin('k', 'two', hour)).toEqual({ state: 'done', value: '1' });
    await time.advance(1);
    expect(await store.begin('k', 'two', hour)).toEqual({ state: 'begun', repeat: false });
  });
});

describe('a record that stands in the way', () => {
  const row = { run: 'r', done: 0, value: null, over: 0 } as const;
  it.each([
    ['that has gone', undefined, false, undefined],
    ['of a run', row, false, { state: 'running' }],
    ['of a run, as Postgres says it', { ...row, over: false }, true, { state: 'running' }],
    ['of a run that is over', { ...row, over: 1 }, false, { state: 'unfinished', run: 'r' }],
    ['of a run that is over, to who takes over', { ...row, over: true }, true, undefined],
    ['of a value', { ...row, done: 1, value: '5' }, false, { state: 'done', value: '5' }],
    ['of no value', { ...row, done: 1 }, false, { state: 'done', value: '' }],
    ['of a value that has expired', { ...row, done: 1, value: '5', over: 1 }, false, undefined],
  ] as const)('%s', (_what, found, takeOver, state) => {
    expect(stateOf(found, { runMs: 1, takeOver })).toEqual(state);
  });
});

describe('an effect', () => {
  const options = { onCrash: 'refuse' } as const;

  it('whose value is no JSON was done all the same, and is not done again', async () => {
    const store = memoryOnceStore(new SimulatedTime().clock());
    let times = 0;
    const effect = () => {
      times += 1;
      return {
        toJSON() {
          throw 'not today';
        },
      };
    };
    await expect(once(store, 'k', effect, options)).rejects.toMatchObject({
      code: 'PAWL_FENCE_USAGE',
      message: expect.stringContaining('not today'),
    });
    expect(await once(store, 'k', () => 5, options)).toBeUndefined();
    expect(times).toBe(1);
  });

  it('whose record failed says what it came to, whatever the store threw', async () => {
    const store = memoryOnceStore(new SimulatedTime().clock());
    for (const [key, thrown] of [
      ['text', 'gone'],
      ['error', new Error('gone')],
    ] as const) {
      const failing: OnceStore = {
        ...store,
        finish: () => {
          throw thrown;
        },
      };
      await expect(once(failing, key, () => 7, options)).rejects.toMatchObject({
        code: 'PAWL_ONCE_UNRECORDED',
        value: 7,
        message: expect.stringContaining('gone'),
      });
    }
  });

  it('whose own error matters more than that of the question whether it did nothing', async () => {
    const store = memoryOnceStore(new SimulatedTime().clock());
    const fails = () => Promise.reject(new Error('of the effect'));
    // As in (error) => error.response.status < 500, of an error without a response.
    const didNothing = () => {
      throw new TypeError('of the question');
    };
    await expect(once(store, 'k', fails, { onCrash: 'refuse', didNothing })).rejects.toThrow('of the effect');
    await expect(once(store, 'k', fails, { onCrash: 'refuse' })).rejects.toMatchObject({
      code: 'PAWL_ONCE_UNFINISHED',
    });
  });

  it('whose own error matters more than a store that fails on top of it', async () => {
    const store = memoryOnceStore(new SimulatedTime().clock());
    const failing: OnceStore = {
      ...store,
      giveUp: () => Promise.reject(new Error('of the store')),
      forget: () => Promise.reject(new Error('of the store')),
    };
    for (const onCrash of ['refuse', 'repeat'] as const)
      await expect(
        once(failing, onCrash, () => Promise.reject(new Error('of the effect')), { onCrash }),
      ).rejects.toThrow('of the effect');
  });
});
