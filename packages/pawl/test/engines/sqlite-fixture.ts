import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, onTestFinished } from 'vitest';
import { type Clock, systemClock, type Timer } from '../../src/clock.ts';
import type { ConditionalWrite, Engine } from '../../src/engines/engine.ts';
import { type SqliteEngineOptions, sqliteEngine } from '../../src/engines/sqlite/index.ts';

const directories: string[] = [];

afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

/** A directory of its own for the running test. */
export function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-sqlite-'));
  directories.push(directory);
  return directory;
}

/** The path of a database that does not exist yet. */
export function newPath(): string {
  return join(newDirectory(), 'locks.db');
}

/** An engine that is closed at the end of the test. */
export async function open(path: string, options: Partial<SqliteEngineOptions> = {}): Promise<Engine> {
  const engine = await sqliteEngine({ path, ...options });
  onTestFinished(() => engine.close());
  return engine;
}

/** A conditional write with the parts that matter to a test. */
export function write(parts: Partial<ConditionalWrite>): ConditionalWrite {
  return { guards: [], alive: [], puts: [], deletes: [], wakes: [], ...parts };
}

/** Puts one value. @returns the version of the write. */
export async function put(engine: Engine, key: string, value: string): Promise<bigint> {
  const [result] = await engine.commit([write({ puts: [{ key, value }] })]);
  if (result?.kind !== 'committed')
    throw new Error(`A write without guards was answered with ${result?.kind}.`);
  return result.version;
}

/** Waits until `condition` holds; the test's timeout is the limit. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** A machine whose times are set by hand; its timers run as usual. */
export class MachineClock implements Clock {
  sinceBoot = 1_000_000;
  boot = 'boot-1';
  wall = 1_700_000_000_000;

  monotonicMs(): number {
    return systemClock.monotonicMs();
  }

  wallMs(): number {
    return this.wall;
  }

  sinceBootMs(): number {
    return this.sinceBoot;
  }

  bootId(): string {
    return this.boot;
  }

  setTimer(delayMs: number, fire: () => void, options?: { keepProcess?: boolean }): Timer {
    return systemClock.setTimer(delayMs, fire, options);
  }
}

export interface Child {
  readonly process: ChildProcess;
  /** The lines it has printed. */
  readonly lines: string[];
  /** Its exit code, or `null` where a signal ended it; only once all its output is in. */
  readonly ended: Promise<number | null>;
}

/** Runs one of the commands of `sqlite-child.ts` in a process of its own. */
export function startChild(command: string, ...args: string[]): Child {
  const program = fileURLToPath(new URL('sqlite-child.ts', import.meta.url));
  return watch(
    spawn(process.execPath, [program, command, ...args], { stdio: ['ignore', 'pipe', 'inherit'] }),
  );
}

/** The same under a limit on the size of the files it may write. */
export function startLimitedChild(blocks: number, command: string, ...args: string[]): Child {
  const program = fileURLToPath(new URL('sqlite-child.ts', import.meta.url));
  const script = `trap '' XFSZ; ulimit -f ${blocks}; exec "$0" "$@"`;
  const argv = ['-c', script, process.execPath, program, command, ...args];
  return watch(spawn('/bin/sh', argv, { stdio: ['ignore', 'pipe', 'inherit'] }));
}

function watch(child: ChildProcess): Child {
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const lines: string[] = [];
  // A line that the process did not finish is none.
  let rest = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop() ?? '';
    lines.push(...parts);
  });
  const ended = once(child, 'close').then(([code]: (number | null)[]) => code ?? null);
  return { process: child, lines, ended };
}
