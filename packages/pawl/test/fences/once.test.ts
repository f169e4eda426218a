import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import {
  memoryOnceStore,
  type OnceOptions,
  type OnceStore,
  once,
  postgresOnceStore,
  sqliteOnceStore,
} from '../../src/fences/once/index.ts';
import { PostgresServer, postgresPrograms } from '../engines/postgres-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-once-'));
const programs = postgresPrograms();
let postgres: PostgresServer | undefined;
let pool: pg.Pool | undefined;
let made = 0;
const next = () => {
  made += 1;
  return made;
};

beforeAll(async () => {
  if (programs === undefined) return;
  postgres = new PostgresServer(programs);
  await postgres.start();
  pool = new pg.Pool({ port: postgres.port, host: '127.0.0.1', user: 'postgres', database: 'postgres' });
}, 90_000);
afterAll(async () => {
  await pool?.end();
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const stores: [string, boolean, () => OnceStore][] = [
  ['in memory', true, () => memoryOnceStore(systemClock)],
  ['in SQLite', true, () => sqliteOnceStore(new DatabaseSync(join(folder, `${next()}.db`)))],
  [
    'in Postgres',
    programs !== undefined,
    () => postgresOnceStore(pool as pg.Pool, { table: `public.once_${next()}` }),
  ],
];

const REPEAT: OnceOptions = { onCrash: 'repeat' };
const REFUSE: OnceOptions = { onCrash: 'refuse' };
const coded = (code: string) => expect.objectContaining({ code });

describe.each(stores)('once, with its records %s', (_where, available, make) => {
  let store: OnceStore;
  let effects: number;
  const effect = () => {
    effects += 1;
    return { number: effects };
  };
  beforeEach((context) => {
    if (!available) context.skip();
    store = make();
    effects = 0;
  });

  it.each([REPEAT, REFUSE])(
    'does it once, and gives every later call what the first returned: %j',
    async (options) => {
      for (let call = 0; call < 3; call += 1) {
        expect(await once(store, 'invoice 42', effect, options)).toEqual({ number: 1 });
      }
      expect(await once(store, 'invoice 43', effect, options)).toEqual({ number: 2 });
      expect(effects).toBe(2);
    },
  );

  it.each([REPEAT, REFUSE])(
    'of many at once, one does it; the others are told to ask again: %j',
    async (options) => {
      const { promise: goOn, resolve } = Promise.withResolvers<void>();
      const slow = async () => {
        await goOn;
        return effect();
      };
      const calls = Array.from({ length: 8 }, () => once(store, 'a', slow, options));
      // Nobody waits: all but one are refused at once.
      let refused = 0;
      const counted = calls.map((call) =>
        call.catch((error) => {
          expect(error).toMatchObject({ code: 'PAWL_ONCE_RUNNING', retryable: true, resource: 'a' });
          refused += 1;
          if (refused === 7) resolve();
          return undefined;
        }),
      );
      expect((await Promise.all(counted)).filter((value) => value !== undefined)).toEqual([{ number: 1 }]);
      expect(effects).toBe(1);
    },
  );

  it('values come back as JSON, the first too; undefined stays what it is', async () => {
    const values = [undefined, null, 0, '', 'ü', [1, [2]], { a: { b: null } }];
    for (const [i, value] of values.entries()) {
      expect(await once(store, `key ${i}`, () => value, REPEAT)).toEqual(value);
      expect(await once(store, `key ${i}`, () => 'another', REPEAT)).toEqual(value);
    }
    expect(await once<unknown>(store, 'date', () => new Date(0), REPEAT)).toBe('1970-01-01T00:00:00.000Z');
  });

  it('what returns no JSON was done all the same, and is not done again', async () => {
    const odd = () => {
      effects += 1;
      return 5n;
    };
    await expect(once(store, 'a', odd, REPEAT)).rejects.toThrow(coded('PAWL_FENCE_USAGE'));
    expect(await once<unknown>(store, 'a', odd, REPEAT)).toBeUndefined();
    expect(effects).toBe(1);
  });

  it('after a crash between effect and record, "repeat" does it again and says so', async () => {
    const seen: boolean[] = [];
    const run = () =>
      once(
        store,
        'a',
        ({ repeat, key }) => {
          expect(key).toBe('a');
          seen.push(repeat);
        },
        { onCrash: 'repeat', runMs: 1000 },
      );
    await store.begin('a', 'crashed', { runMs: 1, takeOver: true });
    await sleep(20);
    await run();
    await run();
    expect(seen).toEqual([true]);
  });

  it('after a crash between effect and record, "refuse" does not do it again, until an operator has said what happened', async () => {
    for (const key of ['a', 'b']) await store.begin(key, 'crashed', { runMs: 1, takeOver: false });
    await sleep(20);
    for (const key of ['a', 'b', 'a']) {
      await expect(once(store, key, effect, REFUSE)).rejects.toMatchObject({
        code: 'PAWL_ONCE_UNFINISHED',
        run: 'crashed',
      });
    }
    expect(effects).toBe(0);
    await store.forget('a', 'crashed');
    expect(await once(store, 'a', effect, REFUSE)).toEqual({ number: 1 });
    expect(await store.finish('b', '"it was sent"', undefined)).toBe('"it was sent"');
    expect(await once<unknown>(store, 'b', effect, REFUSE)).toBe('it was sent');
    expect(effects).toBe(1);
  });

  it('an effect that throws is repeated with "repeat", and with "refuse" only where it surely did nothing', async () => {
    const fails = (message: string) => () => Promise.reject(new Error(message));
    await expect(once(store, 'a', fails('timeout'), REPEAT)).rejects.toThrow('timeout');
    expect(await once(store, 'a', effect, REPEAT)).toEqual({ number: 1 });

    const options: OnceOptions = {
      onCrash: 'refuse',
      didNothing: (error) => String(error).includes('refused'),
    };
    await expect(once(store, 'b', fails('connection refused'), options)).rejects.toThrow('refused');
    await expect(once(store, 'b', fails('timeout'), options)).rejects.toThrow('timeout');
    await expect(once(store, 'b', effect, options)).rejects.toThrow(coded('PAWL_ONCE_UNFINISHED'));
    expect(effects).toBe(1);
  });

  it('where a slow run was taken for crashed, all get what the first to finish recorded', async () => {
    const { promise: goOn, resolve } = Promise.withResolvers<void>();
    const { promise: underWay, resolve: begun } = Promise.withResolvers<void>();
    const slow = once(
      store,
      'a',
      async () => {
        begun();
        await goOn;
        return 'slow';
      },
      { onCrash: 'repeat', runMs: 1 },
    );
    await underWay;
    await sleep(20);
    expect(await once<string>(store, 'a', () => 'fast', REPEAT)).toBe('fast');
    resolve();
    expect(await slow).toBe('fast');
    expect(await once<string>(store, 'a', () => 'another', REPEAT)).toBe('fast');
  });

  it('a record expires when it was kept for long enough, and no earlier', async () => {
    const keep = (keepMs: number): OnceOptions => ({ onCrash: 'refuse', keepMs });
    await once(store, 'short', effect, keep(1));
    await once(store, 'long', effect, keep(3_600_000));
    await sleep(20);
    expect(await once(store, 'short', effect, keep(1))).toEqual({ number: 3 });
    expect(await once(store, 'long', effect, keep(1))).toEqual({ number: 2 });
  });

  it('what could not be recorded is told with its value', async () => {
    const broken: OnceStore = {
      begin: (...args) => store.begin(...args),
      forget: (...args) => store.forget(...args),
      giveUp: (...args) => store.giveUp(...args),
      finish: () => Promise.reject(new Error('the disk is full')),
    };
    await expect(once(broken, 'a', effect, REPEAT)).rejects.toMatchObject({
      code: 'PAWL_ONCE_UNRECORDED',
      outcome: 'indefinite',
      value: { number: 1 },
      cause: { message: 'the disk is full' },
    });
  });

  it('whatever crashes when, "refuse" never does it twice, and "repeat" only after a crash', async () => {
    const step = fc.constantFrom('done', 'crash before', 'crash after', 'throw');
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 6 }), fc.boolean(), async (steps, repeats) => {
        const key = `key ${next()}`;
        let happened = 0;
        let crashes = 0;
        for (const what of steps) {
          // A crash is a run that never ends: nothing after this point is done by it.
          const crash = () => {
            crashes += 1;
            throw new Error('crash');
          };
          const crashing: OnceStore = what.startsWith('crash')
            ? { ...bound(store), finish: crash, forget: () => {}, giveUp: () => {} }
            : store;
          const run = async () => {
            if (what === 'crash before') crash();
            happened += 1;
            if (what === 'throw') throw new Error('timeout');
          };
          const options: OnceOptions = {
            onCrash: repeats ? 'repeat' : 'refuse',
            runMs: what === 'done' ? 1000 : 1,
          };
          await once(crashing, key, run, options).catch(() => {});
          if (what.startsWith('crash')) await sleep(3);
        }
        const throws = steps.filter((what) => what === 'throw').length;
        expect(happened).toBeLessThanOrEqual(repeats ? 1 + crashes + throws : 1);
        if (repeats && steps.at(-1) === 'done') expect(happened).toBeGreaterThanOrEqual(1);
      }),
      { numRuns: 30 },
    );
  });
});

describe('once', () => {
  it.each(['repeat', 'refuse'])(
    'among processes, one does it, and a crash after it leads to what %s says',
    async (onCrash) => {
      const path = join(folder, `${onCrash}.db`);
      const log = join(folder, `${onCrash}.log`);
      sqliteOnceStore(new DatabaseSync(path));
      const run = (what: string) =>
        new Promise<string>((resolve) => {
          const program = fileURLToPath(new URL('./once-process.ts', import.meta.url));
          execFile(process.execPath, [program, path, log, onCrash, what], (_error, stdout) =>
            resolve(stdout),
          );
        });
      const done = () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []);
      expect(await run('crash')).toBe('');
      expect(done()).toHaveLength(1);
      const answers = await Promise.all(['', '', '', ''].map(run));
      const store = sqliteOnceStore(new DatabaseSync(path));
      if (onCrash === 'refuse') {
        expect(new Set(answers)).toEqual(new Set(['PAWL_ONCE_UNFINISHED']));
        expect(done()).toHaveLength(1);
        expect(store.unfinished()).toEqual([{ key: 'mail', run: expect.any(String) }]);
        return;
      }
      const [, second] = done();
      expect(done()).toHaveLength(2);
      expect(answers).toContain(second);
      for (const answer of answers) expect([second, 'PAWL_ONCE_RUNNING']).toContain(answer);
      expect(store.unfinished()).toEqual([]);
    },
    60_000,
  );

  it('expired records can be removed, others stay', async () => {
    const db = new DatabaseSync(':memory:');
    const store = sqliteOnceStore(db);
    await once(store, 'short', () => 1, { onCrash: 'repeat', keepMs: 1 });
    await once(store, 'for ever', () => 1, REPEAT);
    await store.begin('begun', 'x', { runMs: 1, takeOver: false });
    await sleep(20);
    store.deleteExpired();
    expect(
      db
        .prepare('SELECT key FROM pawl_once ORDER BY key')
        .all()
        .map((row) => row.key),
    ).toEqual(['begun', 'for ever']);
  });

  it.each([
    ['no choice about crashes', {}],
    ['a run of no length', { onCrash: 'repeat', runMs: 0 }],
    ['a length that is none', { onCrash: 'repeat', keepMs: Number.NaN }],
  ])('refuses %s', async (_what, options) => {
    const store = memoryOnceStore(systemClock);
    await expect(once(store, 'a', () => 1, options as OnceOptions)).rejects.toThrow(
      coded('PAWL_FENCE_USAGE'),
    );
    await expect(once(store, '', () => 1, REPEAT)).rejects.toThrow(coded('PAWL_FENCE_USAGE'));
    expect(() => sqliteOnceStore(new DatabaseSync(':memory:'), { table: 'a b' })).toThrow(
      coded('PAWL_FENCE_USAGE'),
    );
  });

  it.skipIf(programs === undefined)('many make the same table in Postgres at once', async () => {
    const makers = Array.from({ length: 6 }, () =>
      postgresOnceStore(pool as pg.Pool, { table: 'made_by_many' }),
    );
    const begun = await Promise.all(
      makers.map((each, i) => each.begin(`${i}`, 'x', { runMs: 1, takeOver: false })),
    );
    expect(begun.every(({ state }) => state === 'begun')).toBe(true);
    await sleep(20);
    expect(await makers[0]?.unfinished()).toHaveLength(6);
    await makers[0]?.deleteExpired();
    await expect(once(makers[0] as OnceStore, 'a\0b', () => 1, REPEAT)).rejects.toThrow(
      coded('PAWL_FENCE_USAGE'),
    );
  });
});

function bound(store: OnceStore): OnceStore {
  return {
    begin: (...args) => store.begin(...args),
    finish: (...args) => store.finish(...args),
    forget: (...args) => store.forget(...args),
    giveUp: (...args) => store.giveUp(...args),
  };
}
