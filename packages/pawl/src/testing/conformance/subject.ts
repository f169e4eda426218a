import { randomBytes } from 'node:crypto';
import type { CommitResult, ConditionalWrite, Engine, Version } from '../../engines/engine.ts';

/** What the suite needs of a test runner: Vitest's and `node:test`'s functions both fit. */
export interface TestRunner {
  describe(name: string, body: () => void): void;
  it(name: string, body: () => Promise<void>): void;
}

/** A store under test. */
export interface EngineSubject {
  /** Another engine over the same store, as another process would have; the suite closes it. */
  openEngine(): Promise<Engine>;
  /** Lets at least so much time pass for the sessions, in ms. */
  passTime(ms: number): Promise<void>;
  /** Ends the store, after all its engines were closed. */
  stop(): Promise<void>;
  /**
   * Starts another process that opens the store and runs {@link writeWithoutEnd} with `prefix`. Only for engines that outlive a
   * process; without it the checks that kill one are not part of the suite.
   */
  startWriter?(prefix: string): Promise<WriterProcess>;
}

/** A process that writes until it is killed. */
export interface WriterProcess {
  /** The lines it has said so far; the last may be cut off. */
  said(): string;
  /** Kills it by SIGKILL, and resolves when it has ended. */
  kill(): Promise<void>;
}

export interface ConformanceOptions extends TestRunner {
  /** The engine's name, for the titles of the tests. */
  readonly engine: string;
  /** A store of its own for each test. */
  start(): Promise<EngineSubject>;
  /** A TTL that is long enough for what a test does meanwhile, in ms; 1000 unless set. */
  readonly ttlMs?: number;
  /** Whether {@link EngineSubject.startWriter} is there. */
  readonly survivesProcesses?: boolean;
}

/** One test: a store, and what it opened of it. */
export interface Trial {
  readonly subject: EngineSubject;
  readonly ttlMs: number;
  open(): Promise<Engine>;
}

export type Check = readonly [name: string, run: (trial: Trial) => Promise<void>];

/** A write with the parts that matter. */
export function write(parts: Partial<ConditionalWrite>): ConditionalWrite {
  return { guards: [], alive: [], puts: [], deletes: [], wakes: [], ...parts };
}

/** A write that puts one value, if `key` is at `version` where that is given. */
export function put(key: string, value: string, version?: Version | null): ConditionalWrite {
  return write({ puts: [{ key, value }], guards: version === undefined ? [] : [{ key, version }] });
}

/** Commits one write. */
export async function commit(engine: Engine, one: ConditionalWrite): Promise<CommitResult> {
  const [result] = await engine.commit([one]);
  if (result === undefined) throw new Error('The engine answered a batch of one write with nothing.');
  return result;
}

/** Commits one write that must happen. @returns its version. */
export async function mustCommit(engine: Engine, one: ConditionalWrite): Promise<Version> {
  const result = await commit(engine, one);
  if (result.kind !== 'committed')
    throw new Error(`A write that had to happen was answered with ${result.kind}.`);
  return result.version;
}

export async function valueAt(engine: Engine, key: string): Promise<string | undefined> {
  return (await engine.read({ keys: [key], ranges: [] })).entries.get(key)?.value;
}

/** A session id that was never used. */
export function newId(): string {
  return randomBytes(8).toString('hex');
}

/** Waits until `condition` holds, letting time pass. @throws after `limitMs` of it. */
export async function until(
  trial: Trial,
  limitMs: number,
  what: string,
  condition: () => boolean,
): Promise<void> {
  const stepMs = 10;
  for (let passedMs = 0; !condition(); passedMs += stepMs) {
    if (passedMs > limitMs) throw new Error(`${what} did not happen within ${limitMs} ms.`);
    await trial.subject.passTime(stepMs);
  }
}
