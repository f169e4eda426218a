import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import * as etcd from '../../src/engines/etcd/messages.ts';
import { WireWriter } from '../../src/engines/etcd/wire.ts';
import { mutatedBytes } from './mutations.ts';
import { readOr } from './read-or.ts';

const RUNS = 600;

const text = fc.string({ maxLength: 6 });
const revision = fc.oneof(fc.nat(300), fc.maxSafeNat());

/** Whether all numbers are whole and exact. */
function exact(value: unknown): boolean {
  if (typeof value === 'number') return Number.isSafeInteger(value);
  if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return true;
  return Object.values(value).every(exact);
}

/** Messages as etcd sends them; numbers of fields as in its rpc.proto and kv.proto. */
const etcdMessages = (() => {
  const kv = fc.record({ key: text, value: text, modRevision: revision, lease: revision });
  type Kv = typeof kv extends fc.Arbitrary<infer T> ? T : never;
  const written = (write: (writer: WireWriter) => void) => {
    const writer = new WireWriter();
    write(writer);
    return Uint8Array.from(writer.finish());
  };
  const header = (writer: WireWriter, at: number) =>
    writer.message(1, () => {
      writer.integer(1, 2 ** 63);
      writer.integer(3, at);
    });
  const writeKv = (writer: WireWriter, field: number, { key, value, modRevision, lease }: Kv) =>
    writer.message(field, () => {
      writer.text(1, key);
      writer.integer(3, modRevision);
      writer.text(5, value);
      writer.integer(6, lease);
    });
  const txn = fc.tuple(revision, fc.boolean(), fc.array(fc.array(kv, { maxLength: 2 }), { maxLength: 3 }));
  return {
    txn: txn.map(([at, succeeded, ranges]) =>
      written((writer) => {
        header(writer, at);
        writer.integer(2, succeeded);
        for (const kvs of ranges)
          writer.message(3, () =>
            writer.message(1, () => kvs.forEach((each) => void writeKv(writer, 2, each))),
          );
        writer.message(3, () =>
          writer.message(4, () => {
            header(writer, at);
            writer.integer(2, true);
          }),
        );
      }),
    ),
    lease: fc.tuple(revision, fc.nat(100)).map(([id, ttl]) =>
      written((writer) => {
        header(writer, 5);
        writer.integer(2, id);
        writer.integer(3, ttl);
        writer.text(4, 'error');
      }),
    ),
    watch: fc.tuple(revision, kv).map(([id, each]) =>
      written((writer) => {
        header(writer, 5);
        writer.integer(2, id);
        writer.integer(3, true);
        writer.integer(5, 7);
        writer.message(11, () => writeKv(writer, 2, each));
      }),
    ),
    status: text.map((version) =>
      written((writer) => {
        header(writer, 5);
        writer.text(2, version);
        // The leader's id has 64 bits.
        writer.integer(4, 2 ** 63);
        writer.text(8, 'alarm');
      }),
    ),
    members: fc.boolean().map((learner) =>
      written((writer) => {
        header(writer, 5);
        writer.message(2, () => writer.integer(5, learner));
      }),
    ),
  };
})();

const ETCD: Readonly<Record<keyof typeof etcdMessages, (bytes: Buffer) => unknown>> = {
  txn: etcd.decodeTxn,
  lease: etcd.decodeLeaseGrant,
  watch: etcd.decodeWatch,
  status: etcd.decodeStatus,
  members: etcd.decodeMembers,
};

describe('what etcd answers', () => {
  const kinds = Object.keys(ETCD) as (keyof typeof ETCD)[];

  it.each(kinds)('a message (%s) is read, with exact numbers', (kind) => {
    fc.assert(
      fc.property(etcdMessages[kind], (bytes) => {
        expect(exact(ETCD[kind](Buffer.from(bytes)))).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  it.each(kinds)('a mutated message (%s) is read or refused, never half read', (kind) => {
    let refused = 0;
    fc.assert(
      fc.property(mutatedBytes(etcdMessages[kind]), (bytes) => {
        const read = readOr(RangeError, () => ETCD[kind](bytes));
        if (read === undefined) refused += 1;
        else expect(exact(read)).toBe(true);
      }),
      { numRuns: RUNS },
    );
    expect(refused).toBeGreaterThan(RUNS / 20);
  });

  it('numbers below zero are read as such, and those beyond 2^53 are refused', () => {
    const lease = (...bytes: number[]) => etcd.decodeLeaseGrant(Buffer.from([0x18, ...bytes])).ttlSeconds;
    expect(lease(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1)).toBe(-1);
    expect(() => lease(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f)).toThrow(RangeError);
    expect(() => lease(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1)).toThrow(RangeError);
  });

  it('any bytes whatever are read or refused', () => {
    fc.assert(
      fc.property(fc.constantFrom(...kinds), fc.uint8Array({ maxLength: 40 }), (kind, bytes) => {
        expect(exact(readOr(RangeError, () => ETCD[kind](Buffer.from(bytes))))).toBe(true);
      }),
      { numRuns: RUNS },
    );
  });
});
