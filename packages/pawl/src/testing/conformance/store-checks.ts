import { deepEqual, equal, ok } from 'node:assert/strict';
import type { Engine } from '../../engines/engine.ts';
import { type Check, commit, mustCommit, put, valueAt, write } from './subject.ts';

/** Guards, batches, versions, ranges. */
export const storeChecks: readonly Check[] = [
  [
    'S2: a write whose guard does not hold does not happen, and says which key differs',
    async ({ open }) => {
      const engine = await open();
      const first = await mustCommit(engine, put('a', '1', null));
      deepEqual(await commit(engine, put('a', '2', null)), { kind: 'conflict', keys: ['a'] });
      const second = await mustCommit(engine, put('a', '2', first));
      deepEqual(await commit(engine, put('a', '3', first)), { kind: 'conflict', keys: ['a'] });
      equal(await valueAt(engine, 'a'), '2');
      await mustCommit(engine, write({ deletes: ['a'], guards: [{ key: 'a', version: second }] }));
      deepEqual(await commit(engine, put('a', '4', second)), { kind: 'conflict', keys: ['a'] });
      equal(await valueAt(engine, 'a'), undefined);
    },
  ],
  [
    'S2: a key that was deleted and put again is at another version',
    async ({ open }) => {
      const engine = await open();
      const first = await mustCommit(engine, put('a', 'x'));
      await mustCommit(engine, write({ deletes: ['a'] }));
      await mustCommit(engine, put('a', 'x'));
      equal((await commit(engine, put('a', 'y', first))).kind, 'conflict');
    },
  ],
  [
    'a write happens as a whole or not at all',
    async ({ open }) => {
      const engine = await open();
      await mustCommit(engine, put('there', '1'));
      const result = await commit(
        engine,
        write({
          guards: [{ key: 'missing', version: 1n }],
          puts: [{ key: 'a', value: '1' }],
          deletes: ['there'],
        }),
      );
      equal(result.kind, 'conflict');
      equal(await valueAt(engine, 'a'), undefined);
      equal(await valueAt(engine, 'there'), '1');
    },
  ],
  [
    'a batch is answered write by write, in order, and each write sees those before it',
    async ({ open }) => {
      const engine = await open();
      const results = await engine.commit([put('a', '1', null), put('a', '2', null), put('b', '1', null)]);
      deepEqual(
        results.map((result) => result.kind),
        ['committed', 'conflict', 'committed'],
      );
      equal(await valueAt(engine, 'a'), '1');
      equal(await valueAt(engine, 'b'), '1');
      deepEqual(await engine.commit([]), []);
    },
  ],
  [
    'S1: versions only rise: across engines, and across deletion',
    async ({ open }) => {
      const engines = [await open(), await open()];
      let last = 0n;
      for (let i = 0; i < 20; i += 1) {
        const engine = engines[i % 2] ?? (await open());
        const version = await mustCommit(engine, put('a', String(i)));
        ok(version > last, `version ${version} came after ${last}`);
        last = version;
        if (i % 3 === 0) await mustCommit(engine, write({ deletes: ['a'] }));
      }
    },
  ],
  [
    'S1: versions never fall within a batch, and no key has the same one twice',
    async ({ open }) => {
      const engine = await open();
      const results = await engine.commit(Array.from({ length: 50 }, (_, i) => put(`k${i}`, 'x')));
      const versions = results.map((result) => (result.kind === 'committed' ? result.version : 0n));
      for (let i = 1; i < versions.length; i += 1) ok((versions[i] ?? 0n) >= (versions[i - 1] ?? 0n));
      const { entries } = await engine.read({ keys: ['k0', 'k49'], ranges: [] });
      equal(entries.get('k0')?.version, versions[0]);
      equal(entries.get('k49')?.version, versions[49]);
      const again = await engine.commit([put('k0', 'y'), put('k1', 'y'), put('k0', 'z')]);
      const [first = 0n, , third = 0n] = again.map((result) =>
        result.kind === 'committed' ? result.version : 0n,
      );
      ok(first > (versions[49] ?? 0n) && third > first);
    },
  ],
  [
    'S1: the version can be raised and never lowered',
    async ({ open }) => {
      const engine = await open();
      await mustCommit(engine, put('a', '1'));
      await engine.raiseVersion(1_000_000n);
      const above = await mustCommit(engine, put('a', '2'));
      ok(above > 1_000_000n);
      await engine.raiseVersion(5n);
      ok((await mustCommit(engine, put('a', '3'))) > above);
    },
  ],
  [
    'S2: of many that want the same guard, one wins each race',
    async ({ open }) => {
      const engines = [await open(), await open()];
      for (let round = 0; round < 10; round += 1) {
        const key = `race-${round}`;
        const results = await Promise.all(
          Array.from({ length: 16 }, (_, i) => commit(pick(engines, i), put(key, String(i), null))),
        );
        equal(results.filter((result) => result.kind === 'committed').length, 1);
      }
    },
  ],
  [
    'S2: counting up by compare-and-set on two engines loses nothing',
    async ({ open }) => {
      const engines = [await open(), await open()];
      const increments = 200;
      let done = 0;
      const work = async (engine: Engine) => {
        while (done < increments) {
          const entry = (await engine.read({ keys: ['count'], ranges: [] })).entries.get('count');
          const next = String(Number(entry?.value ?? 0) + 1);
          const result = await commit(engine, put('count', next, entry?.version ?? null));
          if (result.kind === 'committed') done += 1;
        }
      };
      await Promise.all(Array.from({ length: 8 }, (_, i) => work(pick(engines, i))));
      equal(Number(await valueAt(pick(engines, 0), 'count')), done);
    },
  ],
  [
    'L2: ranges and lists come in the order of their keys, page by page',
    async ({ open }) => {
      const engine = await open();
      const tickets = [3, 1, 10, 2, 100, 20].map((n) => `wait/x/${String(n).padStart(16, '0')}`);
      const others = ['wait/x%2F/1', 'wait/x', 'wait/w/1', 'wait/y/1', 'lock/x'];
      await mustCommit(engine, write({ puts: [...tickets, ...others].map((key) => ({ key, value: key })) }));
      const inOrder = [...tickets].sort();
      const { ranges } = await engine.read({
        keys: [],
        ranges: [
          { prefix: 'wait/x/', limit: 3 },
          { prefix: 'wait/x/', limit: 100 },
          { prefix: 'none/', limit: 3 },
        ],
      });
      deepEqual(
        ranges.map((range) => range.map((entry) => entry.key)),
        [inOrder.slice(0, 3), inOrder, []],
      );
      const paged: string[] = [];
      for (;;) {
        const page = await engine.list('wait/x/', 4, paged.at(-1));
        paged.push(...page.map((entry) => entry.key));
        if (page.length < 4) break;
      }
      deepEqual(paged, inOrder);
    },
  ],
  [
    'keys and values of every kind of character come back as they were',
    async ({ open }) => {
      const engine = await open();
      const values = [
        '',
        '\0',
        'a\0b',
        '\u2028\u2029',
        '"\'\\`$',
        '😀𝒳',
        '\uFEFF',
        '\r\n\t',
        'é',
        'e\u0301',
        'x'.repeat(100_000),
      ];
      const names = [
        ' ',
        '%',
        '%2F',
        '..',
        '.',
        ':',
        '-',
        '_',
        'A',
        'a',
        '~',
        '{a}',
        '*',
        '?',
        '[',
        "'",
        '"',
        '\\',
        '$',
        '0',
      ];
      const keys = names.map((name) => `lock/${name}`);
      const puts = keys.map((key, i) => ({ key, value: values[i % values.length] ?? '' }));
      await mustCommit(engine, write({ puts }));
      const { entries } = await engine.read({ keys, ranges: [] });
      for (const { key, value } of puts) equal(entries.get(key)?.value, value);
      equal((await engine.list('lock/', 1000)).length, keys.length);
    },
  ],
  [
    '10,000 keys can be written, listed and counted',
    async ({ open }) => {
      const engine = await open();
      const keyOf = (i: number) => `many/${String(i).padStart(5, '0')}`;
      for (let i = 0; i < 10_000; i += 1000) {
        await mustCommit(
          engine,
          write({
            puts: Array.from({ length: 1000 }, (_, k) => ({ key: keyOf(i + k), value: String(i + k) })),
          }),
        );
      }
      let seen = 0;
      let after: string | undefined;
      for (;;) {
        const page = await engine.list('many/', 999, after);
        for (const entry of page) equal(entry.key, keyOf(seen++));
        if (page.length < 999) break;
        after = page.at(-1)?.key;
      }
      equal(seen, 10_000);
    },
  ],
  [
    'a read sees one point in time',
    async ({ open, subject }) => {
      const [writer, reader] = [await open(), await open()];
      let writing = true;
      const writes = (async () => {
        for (let i = 0; i < 100; i += 1) {
          await mustCommit(
            writer,
            write({ puts: ['twin/1', 'twin/2', 'twin/3'].map((key) => ({ key, value: String(i) })) }),
          );
        }
        writing = false;
      })();
      while (writing) {
        const { entries, ranges } = await reader.read({
          keys: ['twin/1', 'twin/3'],
          ranges: [{ prefix: 'twin/', limit: 3 }],
        });
        const seen = new Set([...entries.values(), ...(ranges[0] ?? [])].map((entry) => entry.value));
        ok(seen.size <= 1, `one read saw the states ${[...seen].join(', ')}`);
        // An engine may answer reads at once; the writer needs its turn.
        await subject.passTime(1);
      }
      await writes;
    },
  ],
  [
    'two engines see what the other wrote',
    async ({ open }) => {
      const [one, other] = [await open(), await open()];
      const version = await mustCommit(one, put('a', 'from one'));
      equal(await valueAt(other, 'a'), 'from one');
      await mustCommit(other, put('a', 'from the other', version));
      equal(await valueAt(one, 'a'), 'from the other');
    },
  ],
  [
    'S9: what was committed is still there after all engines were closed, if the engine is durable',
    async ({ open }) => {
      const engine = await open();
      const version = await mustCommit(engine, put('a', 'kept'));
      await engine.close();
      const next = await open();
      if (!next.guarantees.durable) return;
      equal(await valueAt(next, 'a'), 'kept');
      ok((await mustCommit(next, put('a', 'later', version))) > version);
    },
  ],
];

function pick(engines: readonly Engine[], index: number): Engine {
  const engine = engines[index % engines.length];
  if (engine === undefined) throw new Error('There is no engine to pick.');
  return engine;
}
