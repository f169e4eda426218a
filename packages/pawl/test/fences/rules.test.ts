import { createSecretKey, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  type BearerRules,
  checkFinished,
  checkResource,
  checkRules,
  claimOf,
  refusal,
  tokenOf,
} from '../../src/fences/bearer.ts';
import { highestInColumn, settleColumn } from '../../src/fences/column.ts';
import { bearerOf, problemOf } from '../../src/fences/http/index.ts';
import { Turns } from '../../src/fences/http/turns.ts';
import { type Bearer, MAX_TOKEN } from '../../src/fences/index.ts';
import { columnsOf, parseResourcePattern } from '../../src/fences/resource-pattern.ts';
import { signSequencer } from '../../src/fences/sequencer.ts';

const key = createSecretKey(randomBytes(32));
const signed = signSequencer(key, { lock: 'x', mode: 'exclusive', slot: 0, token: 900n });
const withCode = (code: string, ...said: string[]) =>
  expect.objectContaining({ code, message: expect.stringMatching(new RegExp(said.join('.*'))) });

describe('the rules of a fence', () => {
  it('bound jumps from 1 to the highest token, and nothing else', () => {
    for (const maxJump of [1n, 5n, MAX_TOKEN]) expect(() => checkRules({ maxJump })).not.toThrow();
    for (const maxJump of [0n, -1n, MAX_TOKEN + 1n, 5])
      expect(() => checkRules({ maxJump: maxJump as bigint })).toThrow(
        expect.objectContaining({ resource: 'maxJump', message: expect.stringContaining('2^63 - 1') }),
      );
    expect(() => checkRules({ sequencer: { keys: [] } })).toThrow(withCode('PAWL_FENCE_USAGE', 'key'));
  });

  it('S7: a bearer without a token is refused, and so is what is no token, shortened in the message', () => {
    for (const bearer of [undefined, null, {}, { token: undefined }] as Bearer[])
      expect(() => tokenOf('x', bearer)).toThrow(withCode('PAWL_MISSING_TOKEN', '"x"'));
    for (const [bearer, said] of [
      [5, 'number 5 '],
      ['5', 'string 5 '],
      [0n, 'bigint 0 '],
      [MAX_TOKEN + 1n, 'bigint 9223372036854775808 '],
      [{ token: '7' }, 'string 7 '],
      ['y'.repeat(99), `string ${'y'.repeat(80)} `],
    ] as [Bearer, string][])
      expect(() => tokenOf('x', bearer)).toThrow(withCode('PAWL_INVALID_TOKEN', `given ${said}as`));
    for (const token of [1n, MAX_TOKEN]) expect(tokenOf('x', { token })).toBe(token);
  });

  it('S7: a signed token jumps as far as it likes, a bare one as far as it may, or not at all', () => {
    const rules = (part: Partial<BearerRules['sequencer']> = {}): BearerRules => ({
      maxJump: 10n,
      sequencer: { keys: key, ...part },
    });
    expect(claimOf('x', signed, rules())).toEqual({ token: 900n, floor: 0n });
    expect(claimOf('x', { token: 5n, sequencer: signed }, rules()).token).toBe(900n);
    expect(claimOf('x', { token: 5n, sequencer: signed }).token).toBe(5n);
    expect(claimOf('x', 10n, rules())).toEqual({ token: 10n, floor: 0n });
    expect(claimOf('x', 11n, rules())).toEqual({ token: 11n, floor: 1n });
    expect(() => claimOf('x', 5n, rules({ required: true }))).toThrow(
      withCode('PAWL_INVALID_SEQUENCER', 'only a signed one'),
    );
    expect(() => claimOf('y', signed, rules())).toThrow(
      withCode('PAWL_INVALID_SEQUENCER', 'of lock "x" \\(slot 0\\)'),
    );
    expect(claimOf('y', signed, rules({ accepts: ({ lock }) => lock === 'x' })).token).toBe(900n);
  });

  it('S7: an equal token is accepted, a lower one refused, and a jump is measured from the highest', () => {
    const claim = (token: bigint, floor = 0n) => ({ token, floor });
    expect(refusal('x', claim(5n), undefined)).toBeUndefined();
    expect(refusal('x', claim(5n), 5n)).toBeUndefined();
    expect(refusal('x', claim(4n), 5n)).toMatchObject({ code: 'PAWL_STALE_TOKEN', token: 4n, highest: 5n });
    expect(refusal('x', claim(20n, 6n), 6n)).toBeUndefined();
    expect(refusal('x', claim(20n, 6n), 5n)).toMatchObject({
      code: 'PAWL_TOKEN_JUMP',
      token: 20n,
      highest: 5n,
    });
    expect(refusal('x', claim(20n, 1n), undefined)).toMatchObject({
      code: 'PAWL_TOKEN_JUMP',
      highest: undefined,
      message: expect.stringContaining('(none)'),
    });
    // Who is stale is told so, whatever else is wrong.
    expect(refusal('x', claim(4n, 9n), 5n)).toMatchObject({ code: 'PAWL_STALE_TOKEN' });
  });

  it('a resource has a name, and an effect is done when it returns', () => {
    for (const name of ['', 5, undefined, '\ud800'])
      expect(() => checkResource(name)).toThrow(withCode('PAWL_FENCE_USAGE', 'not empty'));
    expect(() => checkResource('x')).not.toThrow();
    for (const result of [undefined, null, 5, {}, 'then'])
      expect(() => checkFinished('x', result)).not.toThrow();
    expect(() => checkFinished('x', Promise.resolve())).toThrow(
      withCode('PAWL_FENCE_USAGE', '"x"', 'promise'),
    );
  });
});

describe('a column of tokens', () => {
  it('S7: tells a stale write from one that met no row, and looks only where nothing was written', async () => {
    const look = (highest: bigint | undefined) => async () => highest;
    const never = () => Promise.reject(new Error('was looked at'));
    expect(await settleColumn('x', 5n, 1, never)).toBe(true);
    for (const written of [0, null]) {
      expect(await settleColumn('x', 5n, written, look(undefined))).toBe(false);
      expect(await settleColumn('x', 5n, written, look(5n))).toBe(false);
      await expect(settleColumn('x', 5n, written, look(6n))).rejects.toMatchObject({
        code: 'PAWL_STALE_TOKEN',
        token: 5n,
        highest: 6n,
      });
    }
  });

  it('is read as text, since a number does not hold every token', () => {
    expect(highestInColumn([{ highest: '9223372036854775807' }])).toBe(MAX_TOKEN);
    expect([highestInColumn([{ highest: null }]), highestInColumn([])]).toEqual([undefined, undefined]);
  });
});

describe('the resource of a guard', () => {
  it('is text with columns in braces', () => {
    const parts = parseResourcePattern('a:{id}/{no}.');
    expect(parts).toEqual([{ text: 'a:' }, { column: 'id' }, { text: '/' }, { column: 'no' }, { text: '.' }]);
    expect(columnsOf(parts)).toEqual(['id', 'no']);
    expect(parseResourcePattern('plain')).toEqual([{ text: 'plain' }]);
    for (const pattern of ['{', 'a}', '{}', '{a', 'a{b}}', '{a{b}'])
      expect(() => parseResourcePattern(pattern), pattern).toThrow(
        withCode('PAWL_FENCE_USAGE', 'not closed'),
      );
    expect(() => parseResourcePattern('')).toThrow(withCode('PAWL_FENCE_USAGE'));
  });
});

describe('HTTP', () => {
  it('carries a token as a decimal text, and anything else as it is, to be refused by the fence', () => {
    expect([bearerOf(undefined), bearerOf('')]).toEqual([undefined, undefined]);
    expect([bearerOf('5'), bearerOf(['5'])]).toEqual([5n, 5n]);
    expect([bearerOf('05'), bearerOf('x'), bearerOf(['5', '6'])]).toEqual(['05', 'x', '5, 6']);
  });

  it.each([
    ['PAWL_STALE_TOKEN', 409, 'stale-token', 'Stale fencing token'],
    ['PAWL_MISSING_TOKEN', 428, 'missing-token', 'Fencing token required'],
    ['PAWL_INVALID_TOKEN', 400, 'invalid-token', 'Invalid fencing token'],
    ['PAWL_INVALID_SEQUENCER', 400, 'invalid-sequencer', 'Invalid sequencer'],
    ['PAWL_TOKEN_JUMP', 400, 'token-jump', 'Fencing token too high'],
  ])('answers %s with %d', (code, status, name, title) => {
    const error = Object.assign(new Error('why'), { code, resource: 'x', token: 5n, highest: 6n });
    expect(problemOf(error)).toEqual({
      type: `urn:pawl:problem:${name}`,
      title,
      status,
      detail: 'why',
      code,
      resource: 'x',
      token: '5',
      highest: '6',
    });
    // What the request carried is what its client knows.
    expect(problemOf(error, { resource: 'y', bearer: 'z' })).toMatchObject({ resource: 'y', token: 'z' });
    const bare = problemOf(Object.assign(new Error('why'), { code, resource: 'x' }), {
      bearer: { token: 5n },
    });
    expect(bare).not.toHaveProperty('token');
    expect(bare).not.toHaveProperty('highest');
  });

  it('has no answer to other errors', () => {
    for (const error of [new Error('x'), 'x', { code: 'PAWL_STALE_TOKEN' }, undefined])
      expect(problemOf(error)).toBeUndefined();
    expect(problemOf(Object.assign(new Error('x'), { code: 'PAWL_FENCE_BUSY' }))).toBeUndefined();
  });

  it('gives turns one after the other, for each name by itself', async () => {
    const turns = new Turns();
    const order: string[] = [];
    const first = await turns.take('x');
    const second = turns.take('x').then((done) => {
      order.push('second');
      return done;
    });
    const third = turns.take('x').then(() => order.push('third'));
    (await turns.take('y'))();
    await Promise.resolve();
    expect(order).toEqual([]);
    first();
    first();
    const done = await second;
    await Promise.resolve();
    expect(order).toEqual(['second']);
    done();
    await third;
    expect(order).toEqual(['second', 'third']);
    // Nobody is before who comes once all are done.
    (await turns.take('y'))();
  });
});
