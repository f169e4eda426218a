import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TransientMap } from '../src/transient-map.ts';
import { minorCollection } from './collections.ts';

describe('a transient map', () => {
  it('is a map, in the order of insertion', () => {
    const key = fc.nat(40);
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.record({ do: fc.constant('set' as const), key, value: fc.nat() }) },
      { weight: 4, arbitrary: fc.record({ do: fc.constant('delete' as const), key }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('clear' as const) }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300, size: 'max' }), (steps) => {
        const [map, expected] = [new TransientMap<number, number>(), new Map<number, number>()];
        for (const one of steps) {
          if (one.do === 'set') for (const each of [map, expected]) each.set(one.key, one.value);
          else if (one.do === 'delete') expect(map.delete(one.key)).toBe(expected.delete(one.key));
          else for (const each of [map, expected]) each.clear();
          expect(map.size).toBe(expected.size);
        }
        expect([...map]).toEqual([...expected]);
        expect([[...map.keys()], [...map.values()]]).toEqual([[...expected.keys()], [...expected.values()]]);
        for (let i = 0; i <= 40; i += 1) {
          expect(map.has(i)).toBe(expected.has(i));
          expect(map.get(i)).toBe(expected.get(i));
        }
      }),
    );
  });

  it.each([1, 64, 1000])('keeps nothing of what has gone, however old it is, with %i entries', (live) => {
    const map = new TransientMap<number, unknown>();
    const entry = () => ({ data: new Array(100).fill(1.5) });
    for (let i = 0; i < live; i += 1) map.set(i, entry());
    // Whatever outlives a few small collections is looked at again only by a large one.
    for (let i = 0; i < 3; i += 1) minorCollection();
    const before = process.memoryUsage().heapUsed;
    const churned = 20_000;
    for (let i = live; i < live + churned; i += 1) {
      map.set(i, entry());
      map.delete(i - live);
      if (i % 1000 === 0) minorCollection();
    }
    minorCollection();
    const left = process.memoryUsage().heapUsed - before;
    // An entry is some 850 bytes.
    expect(left / churned).toBeLessThan(live === 1000 ? 300 : 100);
  });
});
