import type { Operation } from '../../src/testing/index.ts';
import { acquire, ask, end, release } from './histories.ts';

const SHARED = { mode: 'shared' } as const;
const WAITS = { waits: true } as const;
const WAITS_SHARED = { mode: 'shared', waits: true } as const;
const slotOf = (slot?: number) => (slot === undefined ? { permits: 2 } : { permits: 2, slot });

export const GOOD_IN_MODES: [string, Operation[]][] = [
  [
    'readers who come and go, with the token of their run',
    [
      ask('a', SHARED, 3n, [0, 1]),
      ask('b', SHARED, 3n, [2, 3]),
      release('a', 3n, [4, 5]),
      ask('c', SHARED, 3n, [6, 7]),
      release('b', 3n, [8, 9]),
      release('c', 3n, [10, 11]),
      ask('d', SHARED, 4n, [12, 13]),
    ],
  ],
  [
    'a writer between two runs of readers',
    [
      ask('a', SHARED, 1n, [0, 1]),
      acquire('w', 'refused', [2, 3]),
      release('a', 1n, [4, 5]),
      acquire('w', 2n, [6, 7]),
      ask('b', SHARED, 'refused', [8, 9]),
      release('w', 2n, [10, 11]),
      ask('b', SHARED, 3n, [12, 13]),
    ],
  ],
  [
    'a reader of unknown token, whose run is told by the next',
    [ask('a', SHARED, 'unknown', [0, 1]), ask('b', SHARED, 5n, [2, 3]), release('a', 5n, [4, 5])],
  ],
  [
    'a reader who does not pass a writer that waits',
    [
      ask('a', SHARED, 1n, [0, 1]),
      ask('w', WAITS, 2n, [2, 9]),
      ask('b', SHARED, 'refused', [4, 5]),
      release('a', 1n, [6, 7]),
    ],
  ],
  [
    'a reader beside one whose session has ended',
    [
      ask('a', SHARED, 1n, [0, 1]),
      end('a', [2, 30]),
      ask('b', SHARED, 1n, [4, 5]),
      acquire('w', 'refused', [40, 41]),
    ],
  ],
  [
    'slots with tokens of their own',
    [
      ask('a', slotOf(0), 9n, [0, 1]),
      ask('b', slotOf(1), 2n, [2, 3]),
      ask('c', slotOf(), 'refused', [4, 5]),
      release('a', 9n, [6, 7]),
      ask('c', slotOf(0), 10n, [8, 9]),
    ],
  ],
  [
    'two slots of one session, with equal tokens',
    [
      ask('a', slotOf(0), 1n, [0, 1]),
      ask('a', slotOf(1), 1n, [2, 3]),
      release('a', 1n, [4, 5], 'released', 1),
      ask('b', slotOf(1), 2n, [6, 7]),
      release('a', 1n, [8, 9], 'released', 0),
    ],
  ],
  [
    'a slot that was granted nobody knows to whom',
    [
      ask('a', slotOf(), 'unknown', [0, Infinity]),
      ask('b', slotOf(0), 5n, [2, 3]),
      ask('c', slotOf(), 'refused', [4, 5]),
    ],
  ],
  [
    'one that timed out while another held',
    [acquire('a', 1n, [0, 1]), ask('b', WAITS, 'refused', [2, 5]), release('a', 1n, [6, 7])],
  ],
  [
    'one that came to wait, and timed out when the lock was free again',
    [acquire('a', 1n, [0, 1]), ask('b', WAITS, 'refused', [2, 9]), release('a', 1n, [4, 5])],
  ],
  [
    'one attempt refused on a free lock, behind one that came to wait',
    [
      acquire('a', 1n, [0, 1]),
      ask('b', WAITS, 2n, [2, 20]),
      release('a', 1n, [4, 5]),
      acquire('c', 'refused', [6, 7]),
    ],
  ],
  [
    'one attempt refused on a free lock, behind one that waits for another lock too',
    [ask('b', { waits: true, several: true }, 2n, [2, 20]), acquire('c', 'refused', [6, 7])],
  ],
  [
    'one attempt refused while a session that has ended is not buried yet',
    [
      acquire('a', 1n, [0, 1]),
      end('a', [2, 30]),
      release('a', 1n, [4, 5], 'notHeld'),
      acquire('b', 'refused', [6, 7]),
      acquire('b', 2n, [8, 9]),
    ],
  ],
  [
    'readers that wait together',
    [
      acquire('a', 1n, [0, 1]),
      ask('b', WAITS_SHARED, 2n, [2, 8]),
      ask('c', WAITS_SHARED, 2n, [3, 9]),
      release('a', 1n, [5, 6]),
    ],
  ],
];

GOOD_IN_MODES.push([
  'a run of readers that went on by one who was granted as its time was over',
  [
    acquire('w', 1n, [0, 1]),
    ask('a', WAITS_SHARED, 2n, [2, 6]),
    ask('b', WAITS_SHARED, 'refused', [2, 20]),
    release('w', 1n, [4, 5]),
    release('a', 2n, [8, 9]),
    ask('c', SHARED, 2n, [10, 11]),
  ],
]);

const LEFT: [string, Operation[]] = [
  'one attempt refused because of what a time-out left behind',
  [
    acquire('a', 1n, [0, 1]),
    { ...ask('b', WAITS, 'refused', [2, 5]), leftAtMs: 20 },
    release('a', 1n, [6, 7]),
    acquire('c', 'refused', [8, 9]),
    acquire('d', 2n, [10, 11]),
    release('d', 2n, [12, 13]),
  ],
];
GOOD_IN_MODES.push(LEFT);

export const BAD_IN_MODES: [promise: string, string, Operation[]][] = [
  [
    'S2',
    'a writer beside a reader',
    [ask('a', SHARED, 1n, [0, 1]), acquire('w', 2n, [2, 3]), release('a', 1n, [4, 5])],
  ],
  [
    'S2',
    'a reader beside a writer',
    [acquire('w', 1n, [0, 1]), ask('a', SHARED, 2n, [2, 3]), release('w', 1n, [4, 5])],
  ],
  [
    'S1',
    'a reader with a token that is not that of the run',
    [ask('a', SHARED, 1n, [0, 1]), ask('b', SHARED, 2n, [2, 3]), release('a', 1n, [4, 5])],
  ],
  [
    'S1',
    'a second run of readers with the token of the first',
    [ask('a', SHARED, 1n, [0, 1]), release('a', 1n, [2, 3]), ask('b', SHARED, 1n, [4, 5])],
  ],
  [
    'S1',
    'a reader with the token of the writer before',
    [acquire('w', 1n, [0, 1]), release('w', 1n, [2, 3]), ask('a', SHARED, 1n, [4, 5])],
  ],
  [
    'S2',
    'a reader refused beside readers',
    [ask('a', SHARED, 1n, [0, 1]), ask('b', SHARED, 'refused', [2, 3])],
  ],
  ['S2', 'two holders of one slot', [ask('a', slotOf(0), 1n, [0, 1]), ask('b', slotOf(0), 2n, [2, 3])]],
  ['S2', 'a slot beyond the last', [ask('a', slotOf(2), 1n, [0, 1])]],
  [
    'S2',
    'a holder more than there are slots, one of them unknown',
    [
      ask('a', slotOf(), 'unknown', [0, 1]),
      ask('b', slotOf(0), 1n, [2, 3]),
      ask('c', slotOf(1), 2n, [4, 5]),
      release('a', 'unknown', [6, 7]),
    ],
  ],
  [
    'S2',
    'a refusal while a slot was free',
    [ask('a', slotOf(0), 1n, [0, 1]), ask('b', slotOf(), 'refused', [2, 3])],
  ],
  [
    'S1',
    'a token of a slot that fell, though another slot has had none so high',
    [ask('a', slotOf(0), 5n, [0, 1]), release('a', 5n, [2, 3]), ask('b', slotOf(0), 4n, [4, 5])],
  ],
  [
    'S4',
    'a release of the other slot',
    [ask('a', slotOf(0), 1n, [0, 1]), release('a', 1n, [2, 3], 'released', 1)],
  ],
  ['S6', 'one that timed out though nobody held', [ask('b', WAITS, 'refused', [2, 5])]],
  [
    'S2',
    'one attempt refused on a free lock, though nobody who was asking had had to wait',
    [
      ask('b', WAITS, 2n, [2, 20]),
      acquire('c', 'refused', [4, 5]),
      acquire('d', 1n, [6, 7]),
      release('d', 1n, [8, 9]),
    ],
  ],
  [
    'S2',
    'one attempt refused after one that waited had timed out',
    [
      acquire('a', 1n, [0, 1]),
      ask('b', WAITS, 'refused', [2, 5]),
      release('a', 1n, [6, 7]),
      acquire('c', 'refused', [8, 9]),
    ],
  ],
  [
    'S6',
    'one attempt refused after all that a time-out left behind was gone',
    [...LEFT[1], acquire('e', 'refused', [21, 22])],
  ],
  [
    'S6',
    'one that timed out and waited for nobody but what it left behind',
    [{ ...ask('b', WAITS, 'refused', [2, 5]), leftAtMs: Infinity }],
  ],
  [
    'S1',
    'a run of readers that went on after the one who gave it back',
    [
      acquire('w', 1n, [0, 1]),
      ask('a', WAITS_SHARED, 2n, [2, 6]),
      ask('b', WAITS_SHARED, 'refused', [2, 20]),
      release('w', 1n, [4, 5]),
      release('a', 2n, [8, 9]),
      ask('c', SHARED, 2n, [21, 22]),
    ],
  ],
  [
    'S2',
    'one that barges refused on a free lock behind another that barges',
    [
      ask('a', { barging: true }, 1n, [0, 1]),
      ask('b', { barging: true, waits: true }, 3n, [2, 20]),
      release('a', 1n, [4, 5]),
      ask('c', { barging: true }, 'refused', [6, 7]),
      ask('d', { barging: true }, 2n, [8, 9]),
      release('d', 2n, [10, 11]),
    ],
  ],
  [
    'L1',
    'a refusal after all of an ended session was to be free',
    [acquire('a', 1n, [0, 1]), end('a', [2, 30]), acquire('b', 'refused', [31, 32])],
  ],
  [
    'S3',
    'a reader whose session had ended',
    [ask('a', SHARED, 1n, [0, 1]), end('b', [0, 5]), ask('b', SHARED, 1n, [6, 7])],
  ],
];
