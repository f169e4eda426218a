export { type Contradiction, checkLinearizable, type LinearizabilityOptions } from './check-linearizable.ts';
export type {
  AcquireOperation,
  EndOperation,
  FencedOperation,
  LockOperation,
  Operation,
  OperationTimes,
  ReleaseOperation,
} from './operations.ts';
export { HistoryUndecidedError } from './undecided.ts';
