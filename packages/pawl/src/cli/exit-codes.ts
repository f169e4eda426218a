import {
  AcquireTimeoutError,
  ClosedError,
  EngineUnavailableError,
  ForbiddenError,
  HeldError,
  InvalidArgumentError,
  LeaseAtRiskError,
  LeaseLostError,
  LimitError,
  LockShapeError,
  NotHeldError,
  OutcomeUnknownError,
  QueueFullError,
  SessionEndedError,
  StoreCorruptError,
  StoreUnusableError,
  StoreVersionError,
  TtlTooShortError,
  UnauthenticatedError,
} from '../errors.ts';
import { FenceBusyError, FenceError, FenceUsageError } from '../fences/errors.ts';
import { UsageError } from './parse.ts';

/** What the exit codes are. `run` otherwise exits with the code of its command, or 128 + the signal that ended it. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 64,
  unavailable: 69,
  internal: 70,
  notAcquired: 75,
  forbidden: 77,
  lost: 121,
  notExecutable: 126,
  notFound: 127,
} as const;

export const EXIT_MEANINGS: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: 'done',
  failed:
    'something did not hold: the lab, the demonstration, the torture of a fence, a lock to break is not held under that token, or a fence refused the token',
  usage: 'the command line is wrong',
  unavailable:
    'the database cannot be used or did not answer; what to torture is not to be had; or Node is too old',
  internal: 'a defect of pawl',
  notAcquired: 'the lock was not acquired in time',
  forbidden: 'the server does not know the token, or it does not allow this',
  lost: 'the lease was lost or at risk, and the command was ended',
  notExecutable: 'the command cannot be executed',
  notFound: 'the command was not found',
};

/** The names of the exit codes, in the order of the codes. */
export const EXITS = Object.keys(EXIT).filter((name): name is keyof typeof EXIT => Object.hasOwn(EXIT, name));

const CLASSES: readonly [number, readonly (abstract new (...args: never[]) => Error)[]][] = [
  [EXIT.usage, [UsageError, InvalidArgumentError, TtlTooShortError, LockShapeError, FenceUsageError]],
  [EXIT.notAcquired, [HeldError, AcquireTimeoutError, QueueFullError, SessionEndedError]],
  [EXIT.lost, [LeaseLostError, LeaseAtRiskError]],
  [EXIT.forbidden, [UnauthenticatedError, ForbiddenError]],
  [
    EXIT.unavailable,
    [
      EngineUnavailableError,
      OutcomeUnknownError,
      StoreUnusableError,
      StoreCorruptError,
      StoreVersionError,
      ClosedError,
      FenceBusyError,
      LimitError,
    ],
  ],
  [EXIT.failed, [NotHeldError, FenceError]],
];

/** The exit code for an error. */
export function exitCodeOf(error: unknown): number {
  const found = CLASSES.find(([, classes]) => classes.some((each) => error instanceof each));
  return found?.[0] ?? EXIT.internal;
}
