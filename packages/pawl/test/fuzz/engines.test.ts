import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Floor as EtcdFloor } from '../../src/engines/etcd/floor.ts';
import { toEntries } from '../../src/engines/redis/entries.ts';
import { Floor as ZookeeperFloor } from '../../src/engines/zookeeper/floor.ts';
import { Frames, frame } from '../../src/engines/zookeeper/frames.ts';
import { JuteReader, JuteWriter } from '../../src/engines/zookeeper/jute.ts';
import { partsOf } from '../../src/engines/zookeeper/keeper.ts';
import { inOrder, pathOfKey } from '../../src/engines/zookeeper/keys.ts';
import { Layout } from '../../src/engines/zookeeper/layout.ts';
import { decodeMarker } from '../../src/engines/zookeeper/marker.ts';
import { decodeWelcome, OPERATION } from '../../src/engines/zookeeper/protocol.ts';
import { EngineUnavailableError, StoreCorruptError } from '../../src/errors.ts';
import { mutatedBytes, mutatedText } from './mutations.ts';
import { readOr } from './read-or.ts';

const RUNS = 600;

const text = fc.string({ maxLength: 6 });

const stat = (out: JuteWriter) =>
  out.long(5n).long(6n).long(0n).long(0n).int(3).int(0).int(0).long(0n).int(1).int(0).long(6n);

/** The answer to a `multi` with a part of each kind. */
const multi = fc
  .tuple(fc.uint8Array({ maxLength: 5 }), fc.array(text, { maxLength: 3 }))
  .map(([data, names]) => {
    const out = new JuteWriter();
    const part = (type: number) => out.int(type).bool(false).int(0);
    stat(part(OPERATION.getData).buffer(data));
    part(OPERATION.getChildren).int(names.length);
    for (const name of names) out.text(name);
    stat(part(OPERATION.setData));
    part(OPERATION.create).text('/a');
    part(-1).int(-101);
    return Uint8Array.from(out.int(-1).bool(true).int(-1).bytes());
  });

describe('what ZooKeeper answers', () => {
  it('a mutated answer is read or refused', () => {
    let refused = 0;
    fc.assert(
      fc.property(mutatedBytes(multi), (bytes) => {
        const parts = readOr(EngineUnavailableError, () => partsOf(new JuteReader(bytes)));
        if (parts === undefined) refused += 1;
        else for (const { code } of parts) expect(Number.isInteger(code)).toBe(true);
      }),
      { numRuns: RUNS },
    );
    expect(refused).toBeGreaterThan(RUNS / 20);
  });

  it('a mutated welcome is read or refused', () => {
    const welcome = new JuteWriter()
      .int(0)
      .int(4000)
      .long(77n)
      .buffer(Buffer.alloc(16, 1))
      .bool(false)
      .bytes();
    fc.assert(
      fc.property(mutatedBytes(fc.constant(Uint8Array.from(welcome))), (bytes) => {
        readOr(RangeError, () => decodeWelcome(bytes));
      }),
      { numRuns: RUNS },
    );
  });

  it('messages are cut alike however the stream comes, and a mutated stream ends or is refused', () => {
    const messages = fc.array(fc.uint8Array({ maxLength: 9 }), { minLength: 1, maxLength: 4 });
    const cut = (chunks: readonly Buffer[]) => {
      const found: string[] = [];
      const frames = new Frames((payload) => found.push(payload.toString('hex')));
      for (const chunk of chunks) frames.take(chunk);
      return found;
    };
    const stream = messages.map((all) => Buffer.concat(all.map((each) => frame(each, Buffer.alloc(0)))));
    fc.assert(
      fc.property(messages, fc.array(fc.nat(40), { maxLength: 5 }), (all, places) => {
        const bytes = Buffer.concat(all.map((each) => frame(each, Buffer.alloc(0))));
        const at = [
          0,
          ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b),
          bytes.length,
        ];
        const chunks = at.slice(1).map((end, i) => bytes.subarray(at[i], end));
        expect(cut(chunks)).toEqual(all.map((each) => Buffer.from(each).toString('hex')));
      }),
      { numRuns: 300 },
    );
    fc.assert(
      fc.property(mutatedBytes(stream), (bytes) => {
        readOr(RangeError, () => cut([bytes]));
      }),
      { numRuns: 300 },
    );
  });

  it('names of nodes are read as keys were written, and others are a typed error', () => {
    const segment = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 5 }),
      fc.stringMatching(/^\d{14,18}$/),
      text,
    );
    const last = (key: string) => pathOfKey('', key).split('/').at(-1) ?? '';
    fc.assert(
      fc.property(segment, (name) => {
        fc.pre(name.isWellFormed() && !name.includes('/'));
        const [child] = inOrder('', [last(name)]);
        expect(child?.kind).toBe('entry');
        expect(name.endsWith(child?.key ?? '?')).toBe(true);
      }),
      { numRuns: 300 },
    );
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), mutatedBytes(segment.map((name) => Buffer.from(last(name)))).map(String)),
        (name) => {
          for (const { key } of readOr(StoreCorruptError, () => inOrder('', [name])) ?? [])
            expect(key.isWellFormed()).toBe(true);
        },
      ),
      { numRuns: RUNS },
    );
  });
});

describe('what engines have stored', () => {
  const layout = new Layout('/pawl', []);
  const offset = fc.bigInt({ min: 0n, max: 2n ** 63n }).map(String);

  it('an etcd floor that is not ours is a typed error', () => {
    const past = fc.array(fc.record({ since: fc.nat(), offset }), { maxLength: 2 });
    fc.assert(
      fc.property(mutatedText(fc.record({ offset, past })), (value) => {
        const floor = readOr(StoreCorruptError, () => new EtcdFloor({ value, modRevision: 9 }));
        if (floor !== undefined) expect(floor.versionAt(12)).toBeGreaterThanOrEqual(12n);
      }),
      { numRuns: RUNS },
    );
  });

  it('a ZooKeeper floor that is not ours is a typed error', () => {
    const past = fc.array(fc.record({ since: offset, offset }), { maxLength: 2 });
    const nodeStat = { createdZxid: 1n, modifiedZxid: 2n, dataVersion: 3, ephemeralOwner: 0n };
    fc.assert(
      fc.property(mutatedText(fc.record({ offset, past })), (value) => {
        const part = { code: 0, data: Buffer.from(value), stat: nodeStat };
        const floor = readOr(StoreCorruptError, () => new ZookeeperFloor(layout, part));
        if (floor !== undefined) expect(floor.versionOf(12n)).toBeGreaterThanOrEqual(12n);
      }),
      { numRuns: RUNS },
    );
  });

  it('a marker of a ZooKeeper session that is not ours is a typed error', () => {
    const marker = fc.record({
      session: offset,
      password: fc.constant('AAAA'),
      ttlMs: fc.integer({ min: 1 }),
    });
    fc.assert(
      fc.property(mutatedText(marker), (value) => {
        const read = readOr(StoreCorruptError, () => decodeMarker('s', value));
        if (read !== undefined)
          expect([typeof read.session.id, Number.isSafeInteger(read.ttlMs)]).toEqual(['bigint', true]);
      }),
      { numRuns: RUNS },
    );
  });

  it('a Redis value that is not ours is a typed error', () => {
    const stored = fc
      .tuple(fc.nat(), fc.string())
      .map(([version, value]) => Buffer.from(`${version}:${value}`));
    fc.assert(
      fc.property(fc.oneof(mutatedBytes(stored).map(String), fc.string()), (value) => {
        for (const entry of readOr(StoreCorruptError, () => toEntries(['k', value])) ?? [])
          expect(value).toBe(`${value.slice(0, value.indexOf(':'))}:${entry.value}`);
      }),
      { numRuns: RUNS },
    );
  });
});
