export {
  type EngineMethod,
  type Fault,
  MemoryFaults,
  MemoryStore,
  memoryEngine,
} from '../engines/memory/index.ts';
export {
  type ConformanceOptions,
  conformanceChecks,
  type EngineSubject,
  engineConformance,
  type TestRunner,
  type WriterProcess,
  writeWithoutEnd,
} from './conformance/index.ts';
export { checkHistory, type EffectSeen, type GrantSeen, type History } from './history.ts';
export {
  type AcquireOperation,
  type Contradiction,
  checkLinearizable,
  type EndOperation,
  type FencedOperation,
  HistoryUndecidedError,
  type LinearizabilityOptions,
  type LockOperation,
  type Operation,
  type OperationTimes,
  type ReleaseOperation,
} from './linearizability/index.ts';
export { SimulatedClock, type SimulatedClockOptions, SimulatedTime } from './simulated-clock.ts';
