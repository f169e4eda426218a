import { describe, expect, it } from 'vitest';
import {
  ContentionError,
  FenceBusyError,
  FencedCommandError,
  FenceError,
  FenceUsageError,
  FenceVersionError,
  InvalidSequencerError,
  InvalidTokenError,
  MissingTokenError,
  OnceRunningError,
  OnceUnfinishedError,
  OnceUnrecordedError,
  StaleTokenError,
  TokenJumpError,
  UnexpectedResponseError,
} from '../../src/fences/errors.ts';

/** C5: of each error its code, whether it surely did not happen, whether to try again, and what it has to say. */
const errors: [FenceError, code: string, outcome: string, retryable: boolean, said: readonly string[]][] = [
  [
    new StaleTokenError('x', 4n, 7n),
    'PAWL_STALE_TOKEN',
    'definite',
    false,
    ['token 4', 'honoured 7', 'acquire the lock again', 'above 7'],
  ],
  [new MissingTokenError('x'), 'PAWL_MISSING_TOKEN', 'definite', false, ['no token', 'pass the lease']],
  [
    new InvalidTokenError('x', 'number 5'),
    'PAWL_INVALID_TOKEN',
    'definite',
    false,
    ['number 5', 'from 1 to 2^63 - 1', 'parseToken'],
  ],
  [new FenceUsageError('x', 'of "x": why'), 'PAWL_FENCE_USAGE', 'definite', false, ['why']],
  [
    new TokenJumpError('x', 9n, 2n),
    'PAWL_TOKEN_JUMP',
    'definite',
    false,
    ['token 9', '(2)', 'maxJump', 'signed sequencer'],
  ],
  [new TokenJumpError('x', 9n, undefined), 'PAWL_TOKEN_JUMP', 'definite', false, ['(none)']],
  [
    new InvalidSequencerError('x', 'why'),
    'PAWL_INVALID_SEQUENCER',
    'definite',
    false,
    ['refused a sequencer: why.'],
  ],
  [new FenceBusyError('x', 50), 'PAWL_FENCE_BUSY', 'definite', true, ['50 ms', 'Try again']],
  [
    new FenceVersionError('x', 3, 2),
    'PAWL_FENCE_VERSION',
    'definite',
    false,
    ['format 3', 'up to 2', 'Upgrade'],
  ],
  [
    new FencedCommandError('x', 0, 'SET', 'OOM'),
    'PAWL_FENCED_COMMAND',
    'definite',
    false,
    ['command 0 (SET)', 'OOM', 'nothing was written'],
  ],
  [
    new FencedCommandError('x', 2, 'SET', 'OOM'),
    'PAWL_FENCED_COMMAND',
    'indefinite',
    false,
    ['the 2 before it'],
  ],
  [new FencedCommandError('x', 1, 'SET', 'same slot'), 'PAWL_FENCED_COMMAND', 'indefinite', false, ['{tag}']],
  [
    new FencedCommandError('x', 1, 'SET', 'non local key'),
    'PAWL_FENCED_COMMAND',
    'indefinite',
    false,
    ['{tag}'],
  ],
  [new OnceRunningError('x'), 'PAWL_ONCE_RUNNING', 'definite', true, ['by another', 'ask again later']],
  [
    new OnceUnfinishedError('x', 'r7'),
    'PAWL_ONCE_UNFINISHED',
    'definite',
    false,
    ['run r7', 'store.finish', 'store.forget'],
  ],
  [
    new OnceUnrecordedError('x', 5, new Error('why')),
    'PAWL_ONCE_UNRECORDED',
    'indefinite',
    false,
    ['was done', 'why'],
  ],
  [new ContentionError('x', 3), 'PAWL_CONTENTION', 'definite', true, ['3 attempts', 'Try again later']],
  [
    new UnexpectedResponseError('x', 'GET', 500),
    'PAWL_UNEXPECTED_RESPONSE',
    'definite',
    false,
    ['GET', '500'],
  ],
  [
    new UnexpectedResponseError('x', 'PUT', 499),
    'PAWL_UNEXPECTED_RESPONSE',
    'definite',
    false,
    ['PUT', '499'],
  ],
  [new UnexpectedResponseError('x', 'PUT', 500), 'PAWL_UNEXPECTED_RESPONSE', 'indefinite', false, ['500']],
];

describe('C5: an error of a fence says what happened and what to do', () => {
  it.each(errors.map((each) => [each[1], ...each] as const))(
    '%s',
    (_name, error, code, outcome, retryable, said) => {
      expect(error).toMatchObject({ code, outcome, retryable, resource: 'x', name: error.constructor.name });
      expect(error).toBeInstanceOf(FenceError);
      for (const text of ['"x"', ...said]) expect(error.message).toContain(text);
    },
  );

  it('advises on slots only where slots are the trouble', () => {
    expect(new FencedCommandError('x', 1, 'SET', 'OOM').message).not.toContain('{tag}');
  });

  it('keeps what the caller needs to go on', () => {
    expect(new StaleTokenError('x', 4n, 7n)).toMatchObject({ token: 4n, highest: 7n });
    expect(new FenceVersionError('x', 3, 2)).toMatchObject({ found: 3, known: 2 });
    expect(new OnceUnfinishedError('x', 'r7').run).toBe('r7');
    const cause = new Error('why');
    expect(new OnceUnrecordedError('x', 5, cause)).toMatchObject({ value: 5, cause });
    expect(new FenceBusyError('x', 50, { cause }).cause).toBe(cause);
    expect(new UnexpectedResponseError('x', 'PUT', 500).status).toBe(500);
    expect([new ContentionError('x', 3).attempts, new FencedCommandError('x', 2, 'SET', '').index]).toEqual([
      3, 2,
    ]);
  });
});
