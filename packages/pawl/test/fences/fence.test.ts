import { describe, expect, it } from 'vitest';
import { isPawlError } from '../../src/errors.ts';
import { Fence } from '../../src/fences/index.ts';

describe('the fence in memory', () => {
  it('returns what the effect returns, and tells the highest token', () => {
    const fence = new Fence('a');
    expect(fence.highest).toBeUndefined();
    expect(fence.write(3n, () => 'done')).toBe('done');
    expect(fence.highest).toBe(3n);
  });

  it('S7: the token stays honoured when the effect throws', () => {
    const fence = new Fence('a');
    expect(() =>
      fence.write(3n, () => {
        throw new Error('disk full');
      }),
    ).toThrow('disk full');
    expect(() => fence.write(2n, () => {})).toThrow(expect.objectContaining({ code: 'PAWL_STALE_TOKEN' }));
  });

  it('S7: refuses an effect that would go on after the check', () => {
    const fence = new Fence('a');
    expect(() => fence.write(1n, async () => {})).toThrow(
      expect.objectContaining({ code: 'PAWL_FENCE_USAGE' }),
    );
  });

  it.each(['', 5, undefined, null, '\ud800'])('refuses %j as the name of a resource', (name) => {
    expect(() => new Fence(name as string)).toThrow(expect.objectContaining({ code: 'PAWL_FENCE_USAGE' }));
  });

  it('says what it was given as a token, and as a name, whatever that was', () => {
    const textless = Object.create(null);
    const odd = [
      5,
      'x',
      true,
      Symbol('x'),
      {},
      [],
      () => {},
      new Proxy({}, {}),
      textless,
      { token: textless },
    ];
    for (const each of odd) {
      expect(() => new Fence('a').raise(each as never)).toThrow(
        expect.objectContaining({ code: expect.stringMatching(/^PAWL_(INVALID|MISSING)_TOKEN$/) }),
      );
      if (typeof each === 'string') continue;
      expect(() => new Fence(each as never)).toThrow(expect.objectContaining({ code: 'PAWL_FENCE_USAGE' }));
    }
  });

  it('C5: its errors pass for errors of Pawl', () => {
    const fence = new Fence('a');
    fence.raise(2n);
    try {
      fence.raise(1n);
      expect.unreachable();
    } catch (error) {
      expect(isPawlError(error)).toBe(true);
      expect(error).toMatchObject({ name: 'StaleTokenError', retryable: false });
    }
  });
});
