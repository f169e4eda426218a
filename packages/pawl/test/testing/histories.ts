import type {
  AcquireOperation,
  EndOperation,
  FencedOperation,
  Operation,
  ReleaseOperation,
} from '../../src/testing/index.ts';

export type Span = readonly [calledAtMs: number, returnedAtMs: number];

const times = (client: string, [calledAtMs, returnedAtMs]: Span) => ({ client, calledAtMs, returnedAtMs });

export function acquire(
  session: string,
  reply: AcquireOperation['reply'],
  span: Span,
  lock = 'x',
): Operation {
  return { kind: 'acquire', lock, session, reply, ...times(session, span) };
}

export type Asked = Pick<AcquireOperation, 'mode' | 'permits' | 'slot' | 'waits' | 'several' | 'barging'>;

/** An acquire of "x" with more about it. */
export function ask(
  session: string,
  asked: Asked,
  reply: AcquireOperation['reply'],
  span: Span,
): AcquireOperation {
  return { kind: 'acquire', lock: 'x', session, ...asked, reply, ...times(session, span) };
}

export function release(
  session: string,
  token: ReleaseOperation['token'],
  span: Span,
  reply: ReleaseOperation['reply'] = 'released',
  slot?: number,
): ReleaseOperation {
  const which = slot === undefined ? {} : { slot };
  return { kind: 'release', lock: 'x', session, token, ...which, reply, ...times(session, span) };
}

export function end(session: string, span: Span): EndOperation {
  return { kind: 'end', session, ...times('engine', span) };
}

export function fenced(
  kind: FencedOperation['kind'],
  token: bigint,
  span: Span,
  reply: FencedOperation['reply'] = 'accepted',
): Operation {
  return { kind, resource: 'r', token, reply, ...times(`holder of ${token}`, span) };
}

export const GOOD: [string, Operation[]][] = [
  ['nothing', []],
  [
    'one holder after the other',
    [acquire('a', 1n, [0, 1]), release('a', 1n, [2, 3]), acquire('b', 2n, [4, 5])],
  ],
  [
    'a grant under way while the last holder releases',
    [acquire('a', 1n, [0, 1]), acquire('b', 2n, [1, 6]), release('a', 1n, [3, 9])],
  ],
  ['a refusal while somebody holds', [acquire('a', 1n, [0, 9]), acquire('b', 'refused', [1, 2])]],
  [
    'a holder whose session ended',
    [
      acquire('a', 1n, [0, 1]),
      end('a', [2, 50]),
      acquire('b', 2n, [10, 11]),
      release('a', 1n, [60, 61], 'notHeld'),
    ],
  ],
  [
    'a holder whose end nobody saw',
    [acquire('a', 1n, [0, 1]), end('a', [2, Infinity]), acquire('b', 2n, [90, 91])],
  ],
  [
    'a release of unknown outcome that took effect late',
    [
      acquire('a', 1n, [0, 1]),
      release('a', 1n, [2, Infinity], 'unknown'),
      acquire('b', 'refused', [3, 4]),
      acquire('b', 2n, [5, 6]),
    ],
  ],
  [
    'an acquire of unknown outcome that was granted and given back',
    [
      acquire('a', 'unknown', [0, Infinity]),
      acquire('b', 'refused', [5, 6]),
      release('a', 'unknown', [7, 8]),
      acquire('b', 2n, [9, 10]),
    ],
  ],
  [
    'an acquire of unknown outcome whose token came out at its release',
    [acquire('a', 'unknown', [0, 3]), release('a', 7n, [4, 5]), acquire('b', 8n, [6, 7])],
  ],
  [
    'an acquire of unknown outcome that never took effect',
    [acquire('a', 'unknown', [0, 5]), acquire('b', 1n, [6, 7])],
  ],
  ['equal tokens at two locks', [acquire('a', 1n, [0, 1]), acquire('b', 1n, [2, 3], 'y')]],
  [
    'writes that a fence let through and refused',
    [
      fenced('raise', 1n, [0, 1]),
      fenced('write', 1n, [2, 3]),
      fenced('write', 1n, [4, 9]),
      fenced('raise', 2n, [6, 7]),
      fenced('write', 1n, [10, 11], 'refused'),
    ],
  ],
  [
    'a write of unknown outcome that raised the fence',
    [
      fenced('write', 5n, [0, Infinity], 'unknown'),
      fenced('write', 4n, [1, 2]),
      fenced('write', 4n, [3, 4], 'refused'),
    ],
  ],
];

export const BAD: [promise: string, string, Operation[]][] = [
  [
    'S2',
    'two holders at once',
    [acquire('a', 1n, [0, 1]), acquire('b', 2n, [2, 3]), release('a', 1n, [4, 5])],
  ],
  [
    'S1',
    'a token that came twice',
    [acquire('a', 1n, [0, 1]), release('a', 1n, [2, 3]), acquire('b', 1n, [4, 5])],
  ],
  ['S1', 'a token that fell', [acquire('a', 5n, [0, 1]), release('a', 5n, [2, 3]), acquire('b', 4n, [4, 5])]],
  [
    'S1',
    'a token with no room for one that must have been granted before',
    [
      acquire('a', 6n, [0, 1]),
      release('a', 6n, [2, 3]),
      acquire('b', 'unknown', [4, 5]),
      release('b', 'unknown', [6, 7]),
      acquire('c', 7n, [8, 9]),
    ],
  ],
  [
    'S4',
    'a late release that freed the new holder',
    [
      acquire('a', 1n, [0, 1]),
      end('a', [2, 3]),
      acquire('b', 2n, [4, 5]),
      release('a', 1n, [6, 7]),
      acquire('c', 3n, [8, 9]),
    ],
  ],
  ['S4', 'a release by another session', [acquire('a', 1n, [0, 1]), release('b', 1n, [2, 3])]],
  [
    'S4',
    'a holder that was told that it does not hold',
    [acquire('a', 1n, [0, 1]), release('a', 1n, [2, 3], 'notHeld')],
  ],
  [
    'S3',
    'a grant to a session that had ended',
    [acquire('a', 1n, [0, 1]), end('a', [2, 5]), acquire('a', 2n, [6, 7])],
  ],
  [
    'S3',
    'a session that held on after its end',
    [acquire('a', 1n, [0, 1]), end('a', [2, 5]), release('a', 1n, [6, 7])],
  ],
  [
    'S2',
    'a refusal while nobody held',
    [acquire('a', 1n, [0, 1]), release('a', 1n, [2, 3]), acquire('b', 'refused', [4, 5])],
  ],
  [
    'S7',
    'a stale write after one with a higher token',
    [fenced('write', 2n, [0, 1]), fenced('write', 1n, [2, 3])],
  ],
  [
    'S8',
    'a stale write after the fence was raised',
    [fenced('raise', 2n, [0, 1]), fenced('write', 1n, [2, 3])],
  ],
  [
    'S7',
    'a current write that was refused',
    [fenced('write', 2n, [0, 1]), fenced('write', 2n, [2, 3], 'refused')],
  ],
];
