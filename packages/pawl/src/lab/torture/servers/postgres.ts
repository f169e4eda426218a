import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DurableServer } from './durable-server.ts';
import { endProcess, findProgram, freePort, versionedFolders } from './programs.ts';

interface Identity {
  readonly uid: number;
  readonly gid: number;
}

/** What this machine lacks for a Postgres; `undefined` if nothing. */
export function lackForPostgres(): string | undefined {
  const missing = ['initdb', 'postgres'].find((name) => program(name) === undefined);
  if (missing !== undefined) return `${missing} is not on PATH`;
  if (isRoot() && identity() === undefined) {
    return 'Postgres does not run as root, and this machine has no user postgres';
  }
  return undefined;
}

/** A Postgres with its settings as they come. It does not run as root, so neither do its programs. */
export class PostgresServer implements DurableServer {
  port = 0;
  readonly #folder = mkdtempSync(join(tmpdir(), 'pawl-torture-postgres-'));
  readonly #identity = isRoot() ? identity() : undefined;
  #process: ChildProcess | undefined;

  async start(): Promise<void> {
    if (this.port === 0) {
      this.port = await freePort();
      if (this.#identity !== undefined) chownSync(this.#folder, this.#identity.uid, this.#identity.gid);
      const args = ['-D', this.#data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'];
      execFileSync(program('initdb') ?? 'initdb', args, {
        stdio: 'ignore',
        cwd: this.#folder,
        ...this.#identity,
      });
    }
    const settings = ['-c', 'listen_addresses=127.0.0.1', '-c', `unix_socket_directories=${this.#folder}`];
    const server = spawn(
      program('postgres') ?? 'postgres',
      ['-D', this.#data, '-p', `${this.port}`, ...settings],
      { stdio: ['ignore', 'ignore', 'pipe'], cwd: this.#folder, ...this.#identity },
    );
    this.#process = server;
    await new Promise<void>((resolve, reject) => {
      let said = '';
      server.stderr.on('data', (chunk) => {
        said = (said + chunk).slice(-1000);
        if (said.includes('ready to accept connections')) resolve();
      });
      server.once('error', reject);
      server.once('exit', () => reject(new Error(`Postgres ended before it was ready: ${said.trim()}`)));
    });
  }

  /** Its children notice and go too. */
  async kill(): Promise<void> {
    await endProcess(this.#process, 'SIGQUIT');
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #data(): string {
    return join(this.#folder, 'data');
  }
}

/** Debian puts none of the server's programs on the path. */
function program(name: string): string | undefined {
  return findProgram(name, versionedFolders('/usr/lib/postgresql'));
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** Who it is that runs Postgres here. */
function identity(): Identity | undefined {
  try {
    const id = (flag: string) =>
      Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8', stdio: 'pipe' }));
    return { uid: id('-u'), gid: id('-g') };
  } catch {
    return undefined;
  }
}
