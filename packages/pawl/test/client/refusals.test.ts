import { describe, expect, it } from 'vitest';
import type { AcquireSettings } from '../../src/client/options.ts';
import { World } from './world.ts';

const code = (value: string) => expect.objectContaining({ code: value });

describe('what acquire refuses', () => {
  const wrong: [string, unknown, Record<string, unknown>][] = [
    ...[undefined, null, 5, {}, '', '\ud800', 'x'.repeat(513), 'é'.repeat(257)].map(
      (name): [string, unknown, Record<string, unknown>] => ['name', name, {}],
    ),
    ...['ttlMs', 'waitMs', 'lockDelayMs'].flatMap((field) =>
      [-1, Number.NaN, Number.POSITIVE_INFINITY, '1000', 1.5, 2 ** 53, 1e300, 2_592_000_001, null].map(
        (value): [string, unknown, Record<string, unknown>] => [field, 'x', { [field]: value }],
      ),
    ),
    ['ttlMs', 'x', { ttlMs: 0 }],
    ['ttlMs', 'x', { ttlMs: -0 }],
    ['mode', 'x', { mode: 'both' }],
    ['signal', 'x', { signal: {} }],
    ['requestId', 'x', { requestId: '' }],
    ['owner', 'x', { owner: { note: 5 } }],
    ['owner', 'x', { owner: { note: 'x'.repeat(2000) } }],
    ['barging', 'x', { barging: 'yes' }],
  ];

  it.each(wrong)('%s: %j %j', async (parameter, name, settings) => {
    const world = new World();
    const { pawl, faults } = world.process();
    const error = await world.failure(pawl.acquire(name as string, settings as AcquireSettings));
    expect(error).toMatchObject({ code: 'PAWL_INVALID_ARGUMENT', parameter, outcome: 'definite' });
    expect(faults.calls.get('commit')).toBeUndefined();
  });

  it('L1: a TTL shorter than the engine keeps, naming the shortest', async () => {
    const world = new World();
    const engine = { minTtlMs: 100 };
    const { pawl } = world.process();
    const { checkSettings } = await import('../../src/client/options.ts');
    expect(() => checkSettings({ ttlMs: 99 }, { ...pawl.guarantees, ...engine })).toThrow(
      expect.objectContaining({ code: 'PAWL_TTL_TOO_SHORT', minTtlMs: 100 }),
    );
    expect(() => checkSettings({ ttlMs: 100, lockDelayMs: 50 }, { ...pawl.guarantees, ...engine })).toThrow(
      code('PAWL_TTL_TOO_SHORT'),
    );
  });

  it('names are kept byte by byte', async () => {
    const world = new World();
    const { pawl } = world.process();
    const names = [
      '{a}',
      'a{b}c',
      '{}',
      '%2F',
      '../x',
      'a/b',
      'a:b',
      '\t',
      '\n',
      '\0',
      '😀',
      'é',
      'e\u0301',
      'A',
      'a',
      'a ',
      'a%',
    ];
    for (const name of names) await pawl.acquire(name);
    const listed: string[] = [];
    for await (const { name } of pawl.list()) listed.push(name);
    expect(listed.sort()).toEqual([...names].sort());
    for (const name of names) expect((await pawl.inspect(name)).holders).toHaveLength(1);
    const some: string[] = [];
    for await (const { name } of pawl.list('a')) some.push(name);
    expect(some.sort()).toEqual(names.filter((name) => name.startsWith('a')).sort());
  });
});
