import { describe, expect, it } from 'vitest';
import type { News } from '../../src/core/commands.ts';
import {
  breakKey,
  breakPrefix,
  decodeName,
  encodeName,
  lastBreakKey,
  lockKey,
  nameOfKey,
  nameProblem,
  requestKey,
  requestOfKey,
  waitKey,
} from '../../src/core/names.ts';
import { decodeNews, encodeNews } from '../../src/core/news.ts';
import {
  decodeBreak,
  decodeLock,
  decodeRequest,
  decodeWaiter,
  encodeBreak,
  encodeLock,
  encodeRequest,
  encodeWaiter,
  type LockRecord,
  type RequestRecord,
  type Waiter,
} from '../../src/core/records.ts';
import { MAX_TOKEN } from '../../src/token.ts';

const corrupt = (what: string) =>
  expect.objectContaining({ code: 'PAWL_STORE_CORRUPT', message: expect.stringContaining(what) });

const holder = {
  session: 's',
  request: 'r',
  mode: 'exclusive',
  slot: 0,
  token: 7n,
  owner: {},
  inbox: 'i',
  lockDelayMs: 0,
  ghost: false,
} as const;
const waiter: Waiter = {
  ticket: 3,
  session: 's',
  request: 'r',
  mode: 'shared',
  owner: { host: 'h' },
  inbox: 'i',
  lockDelayMs: 5,
  barging: true,
  several: false,
};
const asked = { name: 'x', mode: 'exclusive', permits: null, ticket: 4 } as const;
const requests: RequestRecord[] = [
  { state: 'waiting', locks: [asked, { ...asked, permits: 3 }], lockDelayMs: 0, inbox: 'i', how: null },
  { state: 'done', locks: [{ ...asked, ticket: null }], lockDelayMs: 0, how: 'released' },
  { state: 'done', locks: [], lockDelayMs: 0, how: 'broken', breaks: [breakKey('x', 7n, 0)] },
];
const broken = { token: 7n, slot: 1, by: 'me', reason: 'why', atMs: 5, owner: { host: 'h' } };
const record: LockRecord = { permits: null, holders: [holder], nextTicket: 3, waiting: 1, nextShared: 0 };

/** A value that no field has in place of `value`: of another type, or out of its range. */
function wrongFor(field: string, value: unknown): unknown[] {
  if (field === 'permits') return [0, -1, 0.5, 'x'];
  if (field === 'ticket') return [-1, 0.5, 'x'];
  if (field === 'atMs') return ['1', null];
  if (field === 'how') return ['x', 5];
  if (field === 'mode' || field === 'state') return ['x', '', 5, null];
  if (typeof value === 'number') return [-1, 0.5, '1', null];
  if (typeof value === 'boolean') return [0, 'true', null];
  if (Array.isArray(value)) return [{}, 'x', [null], [5], [[]]];
  if (typeof value === 'object' && value !== null) return [null, [], 'x', { note: 5 }];
  return [5, {}, [], null];
}

/** Every way to spoil one field of `sample`, at any depth, or to leave it out. */
function* spoiledOf(sample: unknown): Generator<unknown> {
  if (Array.isArray(sample)) {
    for (const [i, each] of sample.entries())
      for (const spoiled of spoiledOf(each)) yield sample.map((other, at) => (at === i ? spoiled : other));
    return;
  }
  if (typeof sample !== 'object' || sample === null) return;
  for (const [field, value] of Object.entries(sample)) {
    const rest = Object.fromEntries(Object.entries(sample).filter(([other]) => other !== field));
    if (!OPTIONAL.includes(field)) yield rest;
    for (const wrong of wrongFor(field, value)) yield { ...sample, [field]: wrong };
    if (field !== 'owner') for (const spoiled of spoiledOf(value)) yield { ...sample, [field]: spoiled };
  }
}

/** Fields that may be missing: a fresh grant has no token, and some requests have no inbox. */
const OPTIONAL = ['token', 'inbox'];

describe('names', () => {
  it('are measured in bytes of UTF-8, up to 512', () => {
    for (const [name, bytes] of [
      ['x'.repeat(513), 513],
      ['é'.repeat(257), 514],
      ['€'.repeat(171), 513],
      ['😀'.repeat(129), 516],
    ] as const) {
      expect(nameProblem(name)).toBe(`has ${bytes} bytes of UTF-8, more than 512`);
      expect(nameProblem(name, bytes)).toBeUndefined();
    }
    for (const name of ['x'.repeat(512), 'é'.repeat(256), '€'.repeat(170), '😀'.repeat(128)])
      expect(nameProblem(name)).toBeUndefined();
    expect(nameProblem('abcd', 3)).toBe('has 4 bytes of UTF-8, more than 3');
  });

  it('in keys that Pawl never wrote are reported as corrupt', () => {
    for (const encoded of ['', '%2f', 'a%41', '%zz', '%C3', 'a b', 'é'])
      expect(() => decodeName(encoded), encoded).toThrow(corrupt(`"${encoded}" is no name`));
    expect([decodeName('a'), decodeName('%2F')]).toEqual(['a', '/']);
  });

  it('stand in keys as they are where they can, and byte by byte where they cannot', () => {
    expect(encodeName('Az0_.:-')).toBe('Az0_.:-');
    expect(encodeName('a/b c')).toBe('a%2Fb%20c');
    expect(encodeName('\n%é')).toBe('%0A%25%C3%A9');
    expect([lockKey('a/b'), breakKey('a/b', 7n, 2), lastBreakKey('a/b'), waitKey('a/b', 12)]).toEqual([
      'lock/a%2Fb',
      'break/a%2Fb/9223372036854775800-2',
      'broken/a%2Fb',
      'wait/a%2Fb/0000000000000012',
    ]);
    expect([nameOfKey(lockKey('a/b')), nameOfKey(lockKey('lock/é'))]).toEqual(['a/b', 'lock/é']);
    expect(requestKey('s', 'a/b')).toBe('req/s/a%2Fb');
    expect(requestOfKey(requestKey('s', 'a/b'))).toBe('a/b');
  });

  it('of forced releases stand in keys so that the newest grant comes first', () => {
    const tokens = [MAX_TOKEN, 10n ** 18n, 100n, 99n, 10n, 9n, 1n];
    const keys = tokens.map((token) => breakKey('x', token, 0));
    expect(keys.toSorted()).toEqual(keys);
    expect(keys.every((key) => key.startsWith(breakPrefix('x')))).toBe(true);
  });
});

describe('records', () => {
  it('S1: a grant without a token has that of the version that its record was written at', () => {
    expect(decodeLock('k', encodeLock(record), 9n)).toEqual(record);
    const fresh = { ...record, holders: [{ ...holder, token: undefined }, holder] };
    expect(decodeLock('k', encodeLock(fresh), 9n).holders.map(({ token }) => token)).toEqual([9n, 7n]);
  });

  it('come back as they were written', () => {
    expect(decodeBreak('k', encodeBreak(broken))).toEqual(broken);
    expect(decodeWaiter('k', encodeWaiter(waiter))).toEqual(waiter);
    for (const each of requests) expect(decodeRequest('k', encodeRequest(each))).toEqual(each);
  });

  it('that are no JSON, or whose tokens are no numbers, are named, with what is wrong', () => {
    expect(() => decodeLock('lock/x', 'x', 1n)).toThrow(corrupt('"lock/x"'));
    expect(() => decodeLock('lock/x', 'x', 1n)).toThrow(corrupt('not JSON'));
    for (const text of ['5', 'null', '"x"', '[]', '{}'])
      for (const decode of [decodeWaiter, decodeRequest, decodeBreak])
        expect(() => decode('some/key', text)).toThrow(corrupt('"some/key" is corrupt: a field is missing'));
    const holders = [{ ...holder, token: '-1' }];
    expect(() => decodeLock('k', JSON.stringify({ ...record, holders }), 1n)).toThrow(
      corrupt('no decimal number'),
    );
    expect(() => decodeBreak('k', JSON.stringify({ ...broken, token: 'x' }))).toThrow(
      corrupt('no decimal number'),
    );
  });

  const samples: [string, unknown, (text: string) => unknown][] = [
    ['lock', { ...record, holders: [{ ...holder, token: '7' }] }, (text) => decodeLock('k', text, 1n)],
    ['semaphore', { ...record, permits: 2, holders: [] }, (text) => decodeLock('k', text, 1n)],
    ['waiter', waiter, (text) => decodeWaiter('k', text)],
    ['request that waits', requests[0], (text) => decodeRequest('k', text)],
    ['request that is over', requests[1], (text) => decodeRequest('k', text)],
    ['forced release', { ...broken, token: '7' }, (text) => decodeBreak('k', text)],
  ];

  it.each(samples)(
    'of a %s with any field missing or of another type are corrupt',
    (_what, sample, decode) => {
      expect(decode(JSON.stringify(sample))).toBeDefined();
      for (const spoiled of spoiledOf(sample)) {
        expect(() => decode(JSON.stringify(spoiled)), JSON.stringify(spoiled)).toThrow(
          expect.objectContaining({ code: 'PAWL_STORE_CORRUPT' }),
        );
      }
    },
  );
});

describe('a request', () => {
  it('whose forced releases are no keys of such, and would be deleted with it, is corrupt', () => {
    for (const breaks of [null, 'break/x/1-0', [7], ['lock/x'], ['break/x/1-0', 'req/s/r'], {}])
      expect(() => decodeRequest('k', JSON.stringify({ ...requests[2], breaks })), String(breaks)).toThrow(
        corrupt('"k"'),
      );
  });
});

describe('news', () => {
  const to = { session: 's', request: 'r' };

  it('S1: tell tokens, and of a grant of this very commit its version', () => {
    const grant = { name: 'x', mode: 'exclusive', slot: 0 } as const;
    const told: News = {
      kind: 'granted',
      to,
      grants: [
        { ...grant, token: 7n },
        { ...grant, name: 'y', token: undefined },
      ],
    };
    expect(decodeNews(encodeNews(told), 9n)).toEqual({
      kind: 'granted',
      to,
      grants: [
        { ...grant, token: 7n },
        { ...grant, name: 'y', token: 9n },
      ],
    });
  });

  it('of other kinds come as they were sent, and what cannot be read is none', () => {
    const told: News = { kind: 'broken', to, name: 'x', reason: 'why' };
    for (const each of [told, { kind: 'claim', to } as const, { kind: 'cancelled', to } as const])
      expect(decodeNews(encodeNews(each), 9n)).toEqual(each);
    expect(decodeNews('{"kind":', 9n)).toBeUndefined();
    const grant = { name: 'x', mode: 'shared', slot: 2, token: '7' };
    const alike = [
      { kind: 'claim', to },
      { kind: 'cancelled', to },
    ];
    for (const each of [told, ...alike, { kind: 'granted', to, grants: [grant] }]) {
      expect(decodeNews(JSON.stringify(each), 9n)).toBeDefined();
      for (const spoiled of [...spoiledOf(each), { ...each, kind: 'x' }])
        expect(decodeNews(JSON.stringify(spoiled), 9n), JSON.stringify(spoiled)).toBeUndefined();
    }
  });
});
