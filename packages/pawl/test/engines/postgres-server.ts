import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { madeOnce } from './made-once.ts';
import { endProcess, freePort, installPackage } from './server-tools.ts';

/** Where Debian puts the server's programs; installs its package where it may. `undefined` where there is none to be had. */
export function postgresPrograms(): string | undefined {
  const found = programs();
  if (found !== undefined) return found;
  installPackage('postgresql');
  return programs();
}

function programs(): string | undefined {
  const base = '/usr/lib/postgresql';
  const versions = existsSync(base) ? readdirSync(base).sort((a, b) => Number(b) - Number(a)) : [];
  return versions
    .map((version) => join(base, version, 'bin'))
    .find((path) => existsSync(join(path, 'initdb')));
}

/** A Postgres of the test's own, on a free port and in a directory of its own. It does not run as root, so neither do its programs. */
export class PostgresServer {
  port = 0;
  readonly #bin: string;
  readonly #folder = mkdtempSync(join(tmpdir(), 'pawl-postgres-'));
  readonly #identity: { uid: number; gid: number } | undefined;
  #process: ChildProcess | undefined;

  constructor(bin: string) {
    this.#bin = bin;
    if (process.getuid?.() === 0) {
      const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
      this.#identity = { uid: id('-u'), gid: id('-g') };
      chownSync(this.#folder, this.#identity.uid, this.#identity.gid);
    }
  }

  async start(): Promise<void> {
    if (this.port === 0) {
      this.port = await freePort();
      const args = ['-D', this.#data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'];
      madeOnce(`postgres${this.#bin}${this.#identity?.uid ?? ''}`, this.#data, () =>
        execFileSync(join(this.#bin, 'initdb'), args, {
          stdio: 'ignore',
          cwd: this.#folder,
          ...this.#identity,
        }),
      );
    }
    const settings = ['-c', 'listen_addresses=127.0.0.1', '-c', `unix_socket_directories=${this.#folder}`];
    const args = ['-D', this.#data, '-p', `${this.port}`, ...settings];
    const server = spawn(join(this.#bin, 'postgres'), args, {
      stdio: ['ignore', 'ignore', 'pipe'],
      cwd: this.#folder,
      ...this.#identity,
    });
    this.#process = server;
    await new Promise<void>((resolve, reject) => {
      let said = '';
      server.stderr.on('data', (chunk) => {
        said += chunk;
        if (said.includes('ready to accept connections')) resolve();
      });
      server.once('exit', () => reject(new Error(`Postgres ended before it was ready: ${said}`)));
    });
  }

  /** Ends the server at once, as a crash would: its children notice and go too. */
  async kill(): Promise<void> {
    const server = this.#process;
    if (server === undefined) return;
    this.#process = undefined;
    await endProcess(server, 'SIGQUIT');
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #data(): string {
    return join(this.#folder, 'data');
  }
}
