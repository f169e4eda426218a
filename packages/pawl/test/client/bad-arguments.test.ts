import { describe, expect, it } from 'vitest';
import { open } from '../../src/client/open.ts';
import type { AcquireSettings } from '../../src/client/options.ts';
import { connect } from '../../src/client/remote/connect.ts';
import type { Engine } from '../../src/engines/engine.ts';
import { memoryEngine } from '../../src/testing/index.ts';
import { World } from './world.ts';

const invalid = (parameter: string) => ({ code: 'PAWL_INVALID_ARGUMENT', parameter });

/** What another process might hand over instead of what `export()` wrote. */
function exported(value: unknown): string {
  return `pawl1.${Buffer.from(JSON.stringify(value)).toString('base64url')}`;
}

describe('bad arguments are refused before anything happens', () => {
  it.each([undefined, null, {}, 'sqlite'])('open: the engine %j', (engine) => {
    expect(() => open(engine as unknown as Engine)).toThrow(expect.objectContaining(invalid('engine')));
  });

  it.each([0, -1, 1.5, Number.NaN, '5'])('open: maxWaiters %j', async (maxWaiters) => {
    const engine = memoryEngine();
    expect(() => open(engine, { maxWaiters: maxWaiters as number })).toThrow(
      expect.objectContaining(invalid('maxWaiters')),
    );
    await engine.close();
  });

  it('connect: no URL at all, and a token that no header can carry, which is not repeated in the error', async () => {
    await expect(connect([])).rejects.toMatchObject(invalid('urls'));
    for (const token of ['', 'two words', 'a\nb', 'ü', 'x'.repeat(4097)]) {
      const error = await connect('http://127.0.0.1:1', { token }).catch((refused: unknown) => refused);
      expect(error).toMatchObject(invalid('token'));
      if (token.length > 1) expect(String(error)).not.toContain(token);
    }
  });

  it.each([null, 5, 'ttlMs'])('acquire: options %j', async (settings) => {
    const world = new World();
    const { pawl } = world.process();
    const error = await world.failure(pawl.acquire('x', settings as unknown as AcquireSettings));
    expect(error).toMatchObject(invalid('options'));
  });

  it('acquireAll: no list, an empty one, one that is too long, a name twice, a mode that is none', async () => {
    const world = new World();
    const { pawl, faults } = world.process();
    const many = Array.from({ length: 65 }, (_, i) => `x${i}`);
    for (const asks of ['x', [], many, ['x', 'x']] as unknown as string[][])
      expect(await world.failure(pawl.acquireAll(asks))).toMatchObject(invalid('asks'));
    const asks = [{ name: 'x', mode: 'both' as 'shared' }];
    expect(await world.failure(pawl.acquireAll(asks))).toMatchObject(invalid('mode'));
    expect(faults.calls.get('commit')).toBeUndefined();
  });

  it('breakLock: a token that is none, a slot that is none; the lock stays held', async () => {
    const world = new World();
    const { pawl } = world.process();
    const lease = await pawl.acquire('x');
    for (const token of [-1n, 2n ** 63n, 5, '5', undefined])
      expect(
        await world.failure(pawl.breakLock('x', { token: token as bigint, reason: 'test' })),
      ).toMatchObject(invalid('token'));
    for (const slot of [0.5, '0', null])
      expect(
        await world.failure(
          pawl.breakLock('x', { token: lease.token, slot: slot as number, reason: 'test' }),
        ),
      ).toMatchObject(invalid('slot'));
    expect(await world.failure(pawl.breakLock('x', { token: lease.token, reason: '' }))).toMatchObject(
      invalid('reason'),
    );
    expect((await pawl.inspect('x')).holders).toHaveLength(1);
    await pawl.breakLock('x', { token: lease.token, slot: 0, reason: 'test' });
    expect((await pawl.inspect('x')).holders).toEqual([]);
  });

  it('withLock without work', async () => {
    const world = new World();
    const { pawl } = world.process();
    const work = undefined as unknown as () => void;
    expect(await world.failure(pawl.withLock('x', {}, work))).toMatchObject(invalid('work'));
  });

  it('watch: a signal that is none, a pause that is none', async () => {
    const world = new World();
    const { pawl } = world.process();
    for (const [settings, parameter] of [
      [{ signal: {} as AbortSignal }, 'signal'],
      [{ everyMs: 0 }, 'everyMs'],
    ] as const)
      expect(await world.failure(pawl.watch('x', settings).next())).toMatchObject(invalid(parameter));
  });

  const sound = { name: 'x', token: '5', session: 'abc', request: 'r', ttlMs: 1000 };
  it.each([
    ['null', null],
    ['a number', 5],
    ['an empty object', {}],
    ['no name', { ...sound, name: '' }],
    ['a name that is none', { ...sound, name: 5 }],
    ['a session that is none', { ...sound, session: 'a/b' }],
    ['an empty session', { ...sound, session: '' }],
    ['no request', { ...sound, request: '' }],
    ['a token that is none', { ...sound, token: '-5' }],
    ['no token', { ...sound, token: undefined }],
    ['a TTL of nothing', { ...sound, ttlMs: 0 }],
    ['a broken TTL', { ...sound, ttlMs: 1.5 }],
    ['a TTL as text', { ...sound, ttlMs: '1000' }],
  ])('resume: what export() did not write: %s', async (_what, value) => {
    const world = new World();
    const { pawl, faults } = world.process();
    expect(await world.failure(pawl.resume(exported(value)))).toMatchObject(invalid('exported'));
    expect(faults.calls.get('openSession')).toBeUndefined();
  });

  it('resume: texts of any other kind', async () => {
    const world = new World();
    const { pawl } = world.process();
    for (const text of ['', 'pawl1.', 'pawl1.%%', 'pawl2.e30', 5 as unknown as string])
      expect(await world.failure(pawl.resume(text))).toMatchObject(invalid('exported'));
    expect(await world.failure(pawl.resume(exported(sound)))).toMatchObject({ code: 'PAWL_NOT_HELD' });
  });
});
