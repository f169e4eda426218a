import type { Operation } from '../../src/testing/index.ts';
import { ask, end, release } from './histories.ts';

const SHARED = { mode: 'shared' } as const;
const WAITS_SHARED = { mode: 'shared', waits: true } as const;
const slotOf = (slot?: number) => (slot === undefined ? { permits: 2 } : { permits: 2, slot });
const BARGES = { barging: true } as const;
const BARGES_WAITS = { barging: true, waits: true } as const;

/** The second was let in when the first had gone, which it heard of only once its time was over. */
const UNSEEN: [string, Operation[]] = [
  'those that barge refused because of one that was granted as its time was over',
  [
    ask('a', BARGES, 1n, [0, 1]),
    ask('b', BARGES_WAITS, 'refused', [2, 20]),
    release('a', 1n, [4, 5]),
    ask('c', BARGES, 'refused', [6, 7]),
    ask('d', BARGES_WAITS, 'refused', [8, 9]),
  ],
];

/** What is explained by a grant that nobody was told of. */
export const GOOD_UNSEEN: [string, Operation[]][] = [
  UNSEEN,
  [
    'a run of readers that went on by what one that began anew had asked for first',
    [
      ask('a, first', WAITS_SHARED, 'unknown', [0, 40]),
      end('a, first', [0, 40]),
      ask('a', WAITS_SHARED, 2n, [0, 3]),
      release('a', 2n, [4, 5]),
      ask('b', SHARED, 2n, [6, 7]),
    ],
  ],
];

export const BAD_UNSEEN: [promise: string, string, Operation[]][] = [
  [
    'S6',
    'one that barges refused after all that a time-out left behind was gone',
    [...UNSEEN[1], ask('e', BARGES, 'refused', [21, 22])],
  ],
  [
    'S2',
    'a permit refused to one that barges though one slot was free, whoever was let in unseen',
    [
      ask('a', { ...slotOf(0), ...BARGES }, 1n, [0, 1]),
      ask('b', { ...slotOf(1), ...BARGES }, 2n, [2, 3]),
      ask('c', { ...slotOf(), ...BARGES_WAITS }, 'refused', [4, 20]),
      release('a', 1n, [6, 7]),
      release('b', 2n, [8, 9]),
      ask('d', { ...slotOf(), ...BARGES }, 'refused', [10, 11]),
    ],
  ],
];
