import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, vi } from 'vitest';
import { open } from '../../src/client/open.ts';
import { sqliteEngine } from '../../src/engines/sqlite/index.ts';

export const PAWL = fileURLToPath(new URL('../../bin/pawl.js', import.meta.url));

export interface Result {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A directory with a database for each test; whatever was started is ended with it, also what was left behind. */
export class Bench {
  folder = '';
  readonly #children = new Set<ChildProcess>();

  constructor() {
    // Every test starts processes, some of them many, and that is slow on a machine that does other things too.
    vi.setConfig({ testTimeout: 90_000 });
    beforeEach(() => {
      this.folder = mkdtempSync(join(tmpdir(), 'pawl-cli-'));
    });
    afterEach(() => {
      for (const child of this.#children) child.kill('SIGKILL');
      this.#children.clear();
      for (let left = this.processes(); left.length > 0; left = this.processes()) {
        for (const pid of left) kill(pid);
      }
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  get db(): string {
    return join(this.folder, 'locks.db');
  }

  /**
   * The processes that were started for this test and have not ended: they inherited its database, or are at work in its directory, as a Redis
   * is, which writes its title over its environment. Linux only.
   */
  processes(): number[] {
    if (!existsSync('/proc/self/environ')) return [];
    return readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0 && (environmentOf(pid) + workplaceOf(pid)).includes(this.folder));
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  /** Starts `pawl` with the test's database. */
  start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Running {
    return this.#track(
      spawn(process.execPath, [PAWL, ...args], { env: { ...process.env, PAWL_DB: this.db, ...env } }),
    );
  }

  /** Starts a shell that finds `pawl` in `$PAWL`. */
  shell(script: string): Running {
    const pawl = `${process.execPath} ${PAWL}`;
    return this.#track(
      spawn('sh', ['-c', script], { env: { ...process.env, PAWL_DB: this.db, PAWL: pawl } }),
    );
  }

  run(...args: string[]): Promise<Result> {
    return this.start(args).ended;
  }

  /** Waits until somebody waits for the lock. */
  async untilWaiting(lock: string): Promise<void> {
    const engine = await sqliteEngine({ path: this.db });
    const pawl = open(engine);
    for await (const { waiting } of pawl.watch(lock, { everyMs: 20 })) if (waiting > 0) break;
    await pawl.close();
    await engine.close();
  }

  #track(child: ChildProcess): Running {
    this.#children.add(child);
    const running = new Running(child);
    void running.ended.then(() => this.#children.delete(child));
    return running;
  }
}

/** A process that was started. */
export class Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Result>;
  stdout = '';
  stderr = '';

  constructor(child: ChildProcess) {
    this.child = child;
    child.stdout?.on('data', (chunk) => {
      this.stdout += chunk;
    });
    child.stderr?.on('data', (chunk) => {
      this.stderr += chunk;
    });
    this.ended = new Promise((resolve) => {
      child.once('close', (code) => resolve({ code, stdout: this.stdout, stderr: this.stderr }));
    });
  }

  /** Waits until the process has printed `text`. */
  async prints(text: string): Promise<void> {
    const ended = this.ended.then(({ stderr }) => {
      throw new Error(`The process ended without printing "${text}": ${stderr}`);
    });
    while (!this.stdout.includes(text)) {
      await Promise.race([new Promise((resolve) => this.child.stdout?.once('data', resolve)), ended]);
    }
    ended.catch(() => {});
  }
}

/** Empty for a process that has ended, also while it is a zombie. */
function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return '';
  }
}

/** Empty for a process that has ended. */
function workplaceOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return '';
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

/** A Node that is too old for Pawl, if this machine has one. */
export function oldNode(): string | undefined {
  for (const folder of (process.env.PATH ?? '').split(':').filter((each) => !each.includes('node_modules'))) {
    try {
      const path = join(folder, 'node');
      const version = execFileSync(path, ['-p', 'process.versions.node'], { encoding: 'utf8' });
      const [major = 0, minor = 0] = version.split('.').map(Number);
      if (major < 22 || (major === 22 && minor < 13)) return path;
    } catch {
      // There is no Node in this folder.
    }
  }
  return undefined;
}
