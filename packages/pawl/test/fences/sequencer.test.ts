import { createSecretKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { fileFence } from '../../src/fences/files/index.ts';
import { memoryFence } from '../../src/fences/http/index.ts';
import { type Bearer, type BearerRules, Fence, MAX_TOKEN } from '../../src/fences/index.ts';
import { type Sequencer, signSequencer, verifySequencer } from '../../src/fences/sequencer.ts';
import { sqliteFence } from '../../src/fences/sqlite.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-sequencer-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const secret = () => createSecretKey(randomBytes(32));
const pair = () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return [privateKey, publicKey] as const;
};
const kinds: [string, () => readonly [sign: KeyObject, verify: KeyObject]][] = [
  [
    'HMAC-SHA256',
    () => {
      const key = secret();
      return [key, key];
    },
  ],
  ['Ed25519', pair],
];
const sequencer: Sequencer = { lock: 'account:1', mode: 'exclusive', slot: 0, token: 42n };
const invalid = expect.objectContaining({ code: 'PAWL_INVALID_SEQUENCER' });
const usage = expect.objectContaining({ code: 'PAWL_FENCE_USAGE' });

describe.each(kinds)('a sequencer signed by %s', (_kind, keys) => {
  const [sign, verify] = keys();

  it('says what was signed, whatever that was, in characters fit for a header', () => {
    const all = fc.record({
      lock: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }),
      mode: fc.constantFrom('exclusive' as const, 'shared' as const),
      slot: fc.integer({ min: 0, max: 1000 }),
      token: fc.bigInt({ min: 1n, max: MAX_TOKEN }),
      expiresAt: fc.option(fc.integer({ min: 1, max: 2 ** 45 }), { nil: undefined }),
    });
    fc.assert(
      fc.property(all, (given) => {
        const text = signSequencer(sign, given);
        expect(text).toMatch(/^[\w.-]+$/);
        expect(verifySequencer(verify, text, { nowMs: 0 })).toEqual(given);
      }),
      { numRuns: 60 },
    );
  });

  it('is refused where any byte of it was changed, left out or added', () => {
    const text = signSequencer(sign, sequencer);
    for (let at = 0; at < text.length; at += 1) {
      for (const other of ['A', 'B', 'Q', 'g', 'w', '_', '-', '.', '=', ' ', 'é']) {
        if (text[at] === other) continue;
        expect(() => verifySequencer(verify, text.slice(0, at) + other + text.slice(at + 1))).toThrow(
          invalid,
        );
        expect(() => verifySequencer(verify, text.slice(0, at) + other + text.slice(at))).toThrow(invalid);
      }
      expect(() => verifySequencer(verify, text.slice(0, at) + text.slice(at + 1))).toThrow(invalid);
    }
    expect(() => verifySequencer(verify, `${text}=`)).toThrow(invalid);
    expect(() => verifySequencer(verify, `${text}.`)).toThrow(invalid);
  });

  it('is refused where another key signed it, and accepted where one of several did', () => {
    const text = signSequencer(sign, sequencer);
    const others = kinds.map(([, make]) => make()[1]);
    for (const other of others) expect(() => verifySequencer(other, text)).toThrow(invalid);
    expect(() => verifySequencer(others, text)).toThrow(invalid);
    expect(verifySequencer([...others, verify], text)).toEqual(sequencer);
  });

  it('is refused once it has expired, and where nobody can tell', () => {
    const text = signSequencer(sign, { ...sequencer, expiresAt: 1000 });
    expect(verifySequencer(verify, text, { nowMs: 999 }).token).toBe(42n);
    expect(() => verifySequencer(verify, text, { nowMs: 1000 })).toThrow(/expired/);
    expect(() => verifySequencer(verify, text)).toThrow(/clock/);
  });
});

describe('signing', () => {
  it('takes keys that are strong enough and of the right kind only', () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 });
    for (const key of [createSecretKey(randomBytes(31)), rsa.privateKey, pair()[1], undefined, 'key']) {
      expect(() => signSequencer(key as KeyObject, sequencer)).toThrow(usage);
    }
    const text = signSequencer(secret(), sequencer);
    for (const keys of [[], createSecretKey(randomBytes(31)), rsa.publicKey, [undefined]]) {
      expect(() => verifySequencer(keys as KeyObject, text)).toThrow(usage);
    }
  });

  it.each([
    ['no name', { lock: '' }],
    ['another mode', { mode: 'both' }],
    ['a slot below 0', { slot: -1 }],
    ['a number as token', { token: 42 }],
    ['no token', { token: 0n }],
    ['a part of a ms', { expiresAt: 1.5 }],
    ['a name that fits in no header', { lock: 'x'.repeat(5000) }],
  ])('refuses %s', (_what, wrong) => {
    expect(() => signSequencer(secret(), { ...sequencer, ...wrong } as Sequencer)).toThrow(usage);
  });

  it.each([undefined, null, 5, '', 'pawl1', 'pawl1..', 'pawl2.e30.e30', 'x'.repeat(5000)])(
    '%j is none',
    (text) => {
      expect(() => verifySequencer(secret(), text as string)).toThrow(invalid);
    },
  );
});

const key = secret();
const fences: [string, (rules: BearerRules) => (resource: string, bearer: Bearer) => unknown][] = [
  [
    'in memory',
    (rules) => {
      const fence = new Fence('account:1', rules);
      return (_resource, bearer) => fence.raise(bearer);
    },
  ],
  ['in SQLite', (rules) => sqliteFence(new DatabaseSync(':memory:'), rules).raise],
  ['for HTTP, in memory', (rules) => memoryFence(rules).raise],
  [
    'around a file',
    (rules) => {
      const own = mkdtempSync(join(folder, 'fence-'));
      return (resource, bearer) => fileFence(join(own, resource), rules).raise(bearer);
    },
  ],
];

describe.each(fences)('a fence %s', (_where, make) => {
  const signed = (token: bigint, more: Partial<Sequencer> = {}) =>
    signSequencer(key, { ...sequencer, token, ...more });
  /** Synchronous fences throw, others reject. */
  const code = async (act: () => unknown) => {
    try {
      await act();
      return 'accepted';
    } catch (error) {
      return (error as { code?: string }).code;
    }
  };

  it('S7: takes a sequencer in place of the token, by the same rule', async () => {
    const raise = make({ sequencer: { keys: key } });
    expect(await code(() => raise('account:1', signed(5n)))).toBe('accepted');
    expect(await code(() => raise('account:1', signed(4n)))).toBe('PAWL_STALE_TOKEN');
    expect(await code(() => raise('account:1', 4n))).toBe('PAWL_STALE_TOKEN');
    expect(await code(() => raise('account:1', { token: 1n, sequencer: signed(6n) }))).toBe('accepted');
    expect(await code(() => raise('account:1', 5n))).toBe('PAWL_STALE_TOKEN');
    expect(await code(() => raise('account:1', 6n))).toBe('accepted');
    expect(await code(() => raise('account:1', '7'))).toBe('PAWL_INVALID_SEQUENCER');
  });

  it('refuses what was signed for another lock or permit, unless it is told otherwise', async () => {
    const raise = make({ sequencer: { keys: key } });
    expect(await code(() => raise('account:1', signed(5n, { lock: 'account:2' })))).toBe(
      'PAWL_INVALID_SEQUENCER',
    );
    expect(await code(() => raise('account:1', signed(5n, { slot: 1 })))).toBe('PAWL_INVALID_SEQUENCER');
    expect(await code(() => raise('account:1', signed(5n, { slot: 1, mode: 'shared' })))).toBe('accepted');
    const told = make({ sequencer: { keys: key, accepts: ({ lock }) => lock === 'all accounts' } });
    expect(await code(() => told('account:1', signed(5n, { lock: 'all accounts' })))).toBe('accepted');
    expect(await code(() => told('account:1', signed(5n)))).toBe('PAWL_INVALID_SEQUENCER');
    const promises = make({ sequencer: { keys: key, accepts: (async () => false) as never } });
    expect(await code(() => promises('account:1', signed(5n)))).toBe('PAWL_INVALID_SEQUENCER');
  });

  it('takes only what is signed where it is told so, and what expires only before', async () => {
    const clock = { wallMs: () => 1000 };
    const raise = make({ sequencer: { keys: key, required: true, clock } });
    expect(await code(() => raise('account:1', 5n))).toBe('PAWL_INVALID_SEQUENCER');
    expect(await code(() => raise('account:1', { token: 5n }))).toBe('PAWL_INVALID_SEQUENCER');
    expect(await code(() => raise('account:1', undefined))).toBe('PAWL_MISSING_TOKEN');
    expect(await code(() => raise('account:1', signed(5n, { expiresAt: 1000 })))).toBe(
      'PAWL_INVALID_SEQUENCER',
    );
    expect(await code(() => raise('account:1', signed(5n, { expiresAt: 1001 })))).toBe('accepted');
  });

  it('S7: refuses a bare token that jumps beyond the bound, so nobody can shut all out; a signed one may', async () => {
    const raise = make({ maxJump: 1000n, sequencer: { keys: key } });
    expect(await code(() => raise('account:1', MAX_TOKEN))).toBe('PAWL_TOKEN_JUMP');
    expect(await code(() => raise('account:1', 1000n))).toBe('accepted');
    expect(await code(() => raise('account:1', 2001n))).toBe('PAWL_TOKEN_JUMP');
    expect(await code(() => raise('account:1', 2000n))).toBe('accepted');
    expect(await code(() => raise('account:1', 1999n))).toBe('PAWL_STALE_TOKEN');
    expect(await code(() => raise('account:1', signed(5000n)))).toBe('accepted');
    expect(await code(() => raise('account:1', 6000n))).toBe('accepted');
  });

  it('a fence without keys takes no sequencer', async () => {
    const raise = make({});
    expect(await code(() => raise('account:1', signed(5n)))).toBe('PAWL_INVALID_TOKEN');
  });

  it('refuses rules that make no sense', () => {
    for (const maxJump of [0n, -1n, 5, MAX_TOKEN + 1n]) {
      expect(() => make({ maxJump: maxJump as bigint })('account:1', 1n)).toThrow(usage);
    }
    expect(() => make({ sequencer: { keys: [] } })('account:1', 1n)).toThrow(usage);
  });
});
