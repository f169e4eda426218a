import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lockKey, nameOfKey, nameProblem, requestOfKey } from '../../src/core/names.ts';
import { decodeNews, encodeNews } from '../../src/core/news.ts';
import * as records from '../../src/core/records.ts';
import { StoreCorruptError } from '../../src/errors.ts';
import { isToken, MAX_TOKEN } from '../../src/token.ts';
import { anyJson, mutatedText } from './mutations.ts';

const RUNS = 700;
const anyText = anyJson.map((each) => JSON.stringify(each));

const text = fc.string({ minLength: 1, maxLength: 8 });
const nat = fc.nat(1000);
const mode = fc.constantFrom<records.Mode[]>('exclusive', 'shared');
const owner = fc.dictionary(fc.string({ maxLength: 4 }), fc.string({ maxLength: 4 }), { maxKeys: 2 });
const token = fc.bigInt({ min: 1n, max: MAX_TOKEN }).map(String);
const permits = fc.option(fc.integer({ min: 1, max: 1024 }));
const asked = { session: text, request: text, mode, owner, inbox: fc.string(), lockDelayMs: nat };
const holder = fc.record(
  { ...asked, slot: nat, token, ghost: fc.boolean() },
  { requiredKeys: ['session', 'request', 'mode', 'owner', 'inbox', 'lockDelayMs', 'slot', 'ghost'] },
);

/** What each kind of record looks like as it is stored. */
const STORED = {
  lock: fc.record({
    permits,
    holders: fc.array(holder, { maxLength: 3 }),
    nextTicket: nat,
    waiting: nat,
    nextShared: nat,
  }),
  waiter: fc.record({ ...asked, ticket: nat, barging: fc.boolean(), several: fc.boolean() }),
  request: fc.record(
    {
      state: fc.constantFrom('waiting', 'held', 'done'),
      locks: fc.array(fc.record({ name: text, mode, permits, ticket: fc.option(nat) }), { maxLength: 3 }),
      lockDelayMs: nat,
      inbox: fc.string(),
      how: fc.constantFrom('released', 'cancelled', 'broken', 'transferred', null),
      breaks: fc.array(fc.constantFrom('break/x/9223372036854775800-0', 'break/y/1-2'), { maxLength: 2 }),
    },
    { requiredKeys: ['state', 'locks', 'lockDelayMs', 'how'] },
  ),
  break: fc.record({ token, slot: nat, by: text, reason: text, atMs: nat, owner }),
};

const READ: { readonly [K in keyof typeof STORED]: (stored: string) => unknown } = {
  lock: (stored) => records.decodeLock('lock/x', stored, 7n),
  waiter: (stored) => records.decodeWaiter('wait/x/1', stored),
  request: (stored) => records.decodeRequest('req/s/r', stored),
  break: (stored) => records.decodeBreak('break/x', stored),
};

/** Says what it must be, without a line of the sources: whatever is read has to fit. */
const FITS: { readonly [K in keyof typeof STORED]: (read: never) => boolean } = {
  lock: ({ permits: most, holders, ...counters }: records.LockRecord) =>
    isPermits(most) &&
    holders.every(
      (each) => isAsked(each) && isCount(each.slot) && isToken(each.token) && typeof each.ghost === 'boolean',
    ) &&
    [counters.nextTicket, counters.waiting, counters.nextShared].every(isCount),
  waiter: (each: records.Waiter) =>
    isAsked(each) &&
    isCount(each.ticket) &&
    typeof each.barging === 'boolean' &&
    typeof each.several === 'boolean',
  request: (each: records.RequestRecord) =>
    ['waiting', 'held', 'done'].includes(each.state) &&
    each.locks.every(
      (lock) =>
        typeof lock.name === 'string' &&
        isMode(lock.mode) &&
        isPermits(lock.permits) &&
        (lock.ticket === null || isCount(lock.ticket)),
    ) &&
    isCount(each.lockDelayMs) &&
    (each.inbox === undefined || typeof each.inbox === 'string') &&
    [null, 'released', 'cancelled', 'broken', 'transferred'].includes(each.how) &&
    (each.breaks ?? []).every((key) => typeof key === 'string' && key.startsWith('break/')),
  break: (each: records.BreakRecord) =>
    isToken(each.token) &&
    isCount(each.slot) &&
    typeof each.by === 'string' &&
    typeof each.reason === 'string' &&
    typeof each.atMs === 'number' &&
    isOwner(each.owner),
};

const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
const isMode = (value: unknown) => value === 'exclusive' || value === 'shared';
const isPermits = (value: unknown) => value === null || (isCount(value) && value !== 0);
const isOwner = (value: unknown) =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every((each) => typeof each === 'string');
const isAsked = (each: Pick<records.Waiter, keyof typeof asked>) =>
  [each.session, each.request, each.inbox].every((value) => typeof value === 'string') &&
  isMode(each.mode) &&
  isOwner(each.owner) &&
  isCount(each.lockDelayMs);

describe('stored records', () => {
  const kinds = Object.keys(STORED) as (keyof typeof STORED)[];

  it.each(kinds)('a %s is read as it was written', (kind) => {
    fc.assert(
      fc.property(STORED[kind], (stored) => {
        const read = READ[kind](JSON.stringify(stored)) as object;
        expect(FITS[kind](read as never)).toBe(true);
        const again = JSON.parse(
          JSON.stringify(read, (_, value) => (typeof value === 'bigint' ? `${value}` : value)),
        );
        // A holder without a token has that of the commit that wrote it.
        const { holders, ...rest } = stored as { holders?: object[] };
        const expected =
          holders === undefined
            ? rest
            : { ...rest, holders: holders.map((each) => ({ token: '7', ...each })) };
        expect(again).toEqual(JSON.parse(JSON.stringify(expected)));
      }),
      { numRuns: 100 },
    );
  });

  it.each(kinds)('a %s that is not ours is a typed error, never a crash nor misread', (kind) => {
    const refused = { count: 0 };
    fc.assert(
      fc.property(mutatedText(STORED[kind]), (stored) => {
        let read: unknown;
        try {
          read = READ[kind](stored);
        } catch (error) {
          refused.count += 1;
          expect(error).toBeInstanceOf(StoreCorruptError);
          expect((error as Error).message).toContain(' is corrupt: ');
          return;
        }
        expect(FITS[kind](read as never)).toBe(true);
      }),
      { numRuns: RUNS },
    );
    expect(refused.count).toBeGreaterThan(RUNS / 10);
  });

  it('a key that is not ours is a typed error, and no other name', () => {
    const part = fc.oneof(
      fc.string(),
      fc.stringMatching(/^(%[0-9A-Fa-f]{0,2}|[a-z%])*$/),
      fc.string({ unit: 'binary' }).map((each) => encodeURIComponent(each.toWellFormed())),
    );
    fc.assert(
      fc.property(part, (each) => {
        for (const read of [() => nameOfKey(`lock/${each}`), () => requestOfKey(`req/s/${each}`)]) {
          let name: string;
          try {
            name = read();
          } catch (error) {
            expect(error).toBeInstanceOf(StoreCorruptError);
            continue;
          }
          expect(nameProblem(name, Number.POSITIVE_INFINITY)).toBeUndefined();
          // Two keys never meet in one name.
          expect(lockKey(name)).toBe(`lock/${each.slice(each.lastIndexOf('/') + 1)}`);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('a message that is none of ours is left unread', () => {
    const to = fc.record({ session: text, request: text });
    const grants = fc.array(fc.record({ name: text, mode, slot: nat, token }), { maxLength: 3 });
    const news = fc.oneof(
      fc.record({ kind: fc.constant('granted'), to, grants }),
      fc.record({ kind: fc.constantFrom('claim', 'cancelled'), to }),
      fc.record({ kind: fc.constant('broken'), to, name: text, reason: text }),
    );
    fc.assert(
      fc.property(news, (each) => {
        const read = decodeNews(JSON.stringify(each), 7n);
        expect(read === undefined ? undefined : JSON.parse(encodeNews(read))).toEqual({ ...each });
      }),
      { numRuns: 100 },
    );
    fc.assert(
      fc.property(fc.oneof(mutatedText(news), anyText), (message) => {
        const read = decodeNews(message, 7n);
        if (read === undefined) return;
        expect([typeof read.to.session, typeof read.to.request]).toEqual(['string', 'string']);
        if (read.kind === 'broken') expect(typeof read.name).toBe('string');
        else if (read.kind === 'granted')
          expect(read.grants.every((each) => typeof each.name === 'string' && isToken(each.token))).toBe(
            true,
          );
        else expect(['claim', 'cancelled']).toContain(read.kind);
      }),
      { numRuns: RUNS },
    );
  });
});
