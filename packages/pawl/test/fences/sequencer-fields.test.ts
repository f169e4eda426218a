import { createHmac, createSecretKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { memoryFence } from '../../src/fences/http/index.ts';
import { type Sequencer, signSequencer, verifySequencer } from '../../src/fences/sequencer.ts';

const bytes = randomBytes(32);
const key = createSecretKey(bytes);

/** A text with these fields, signed as it should be by a service that went wrong. */
function signed(fields: unknown): string {
  const payload = `pawl1.${Buffer.from(JSON.stringify(fields)).toString('base64url')}`;
  return `${payload}.${createHmac('sha256', bytes).update(payload).digest('base64url')}`;
}

function sequencer(part: Partial<Sequencer>): Sequencer {
  return { lock: 'x', mode: 'exclusive', slot: 0, token: 5n, ...part };
}

describe('a sequencer', () => {
  it('is read by whoever has a private key, as by who has the public one', () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const text = signSequencer(privateKey, sequencer({}));
    expect(verifySequencer(privateKey, text)).toEqual(verifySequencer(publicKey, text));
    expect(() => signSequencer(publicKey, sequencer({}))).toThrow(
      expect.objectContaining({ code: 'PAWL_FENCE_USAGE' }),
    );
  });

  it('is one of several keys while one takes over from another', () => {
    const other = createSecretKey(randomBytes(32));
    const text = signSequencer(other, sequencer({}));
    expect(verifySequencer([key, other], text).token).toBe(5n);
    expect(() => verifySequencer([key], text)).toThrow(
      expect.objectContaining({ code: 'PAWL_INVALID_SEQUENCER' }),
    );
    expect(() => verifySequencer([], text)).toThrow(expect.objectContaining({ code: 'PAWL_FENCE_USAGE' }));
  });

  it.each([
    ['no list', { lock: 'x' }],
    ['nothing', []],
    ['no lock', ['', 'exclusive', 0, '5']],
    ['a lock that is none', [5, 'exclusive', 0, '5']],
    ['half a surrogate', ['\ud800', 'exclusive', 0, '5']],
    ['another mode', ['x', 'both', 0, '5']],
    ['a slot below 0', ['x', 'exclusive', -1, '5']],
    ['half a slot', ['x', 'exclusive', 0.5, '5']],
    ['a token as a number', ['x', 'exclusive', 0, 5]],
    ['a token of nothing', ['x', 'exclusive', 0, '']],
    ['an end that is none', ['x', 'exclusive', 0, '5', 'soon']],
  ])('that was signed by a known key and has %s is refused', (_what, fields) => {
    expect(() => verifySequencer(key, signed(fields))).toThrow(
      expect.objectContaining({
        code: 'PAWL_INVALID_SEQUENCER',
        message: expect.stringContaining('it was signed, but is none'),
      }),
    );
    expect(verifySequencer(key, signed(['x', 'shared', 3, '5'])).slot).toBe(3);
  });

  it('ends when it says, by the clock that is given, and not without one', () => {
    const text = signSequencer(key, sequencer({ expiresAt: 1000 }));
    expect(verifySequencer(key, text, { nowMs: 999 }).token).toBe(5n);
    for (const [nowMs, said] of [
      [1000, 'it has expired'],
      [undefined, 'no clock was given'],
    ] as const)
      expect(() => verifySequencer(key, text, { nowMs })).toThrow(said);
  });

  it('S7: of a permit is good for the resource of that permit alone, and a shared one for its lock', () => {
    const honours = (resource: string, part: Partial<Sequencer>) => {
      try {
        memoryFence({ sequencer: { keys: key } }).raise(resource, signSequencer(key, sequencer(part)));
        return true;
      } catch (error) {
        expect(error).toMatchObject({ code: 'PAWL_INVALID_SEQUENCER' });
        return false;
      }
    };
    expect(honours('x', {})).toBe(true);
    expect(honours('x', { slot: 2, mode: 'shared' })).toBe(true);
    expect(honours('x', { slot: 2 })).toBe(false);
    expect(honours('x#2', { slot: 2 })).toBe(true);
    expect(honours('x#1', { slot: 2 })).toBe(false);
    expect(honours('y', {})).toBe(false);
  });
});
