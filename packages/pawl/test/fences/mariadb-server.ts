import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { madeOnce } from '../engines/made-once.ts';
import { endProcess, freePort, installPackage, works } from '../engines/server-tools.ts';

/** Whether there is a MariaDB; installs Debian's package where it may. */
export function haveMariadb(): boolean {
  const there = () => works('mariadbd', ['--no-defaults', '--version']);
  if (there()) return true;
  installPackage('mariadb-server');
  return there();
}

/** A MariaDB of the test's own, on a free port and in a directory of its own. It does not run as root, so neither do its programs. */
export class MariadbServer {
  port = 0;
  readonly #folder = mkdtempSync(join(tmpdir(), 'pawl-mariadb-'));
  readonly #identity: { uid: number; gid: number } | undefined;
  #process: ChildProcess | undefined;

  constructor() {
    if (process.getuid?.() === 0) {
      const id = (flag: string) => Number(execFileSync('id', [flag, 'mysql'], { encoding: 'utf8' }));
      this.#identity = { uid: id('-u'), gid: id('-g') };
      chownSync(this.#folder, this.#identity.uid, this.#identity.gid);
    }
  }

  /** Its address, for the database `test`. */
  get address(): string {
    return `mysql://root@127.0.0.1:${this.port}/test`;
  }

  async start(): Promise<void> {
    this.port = await freePort();
    const data = join(this.#folder, 'data');
    const options = { cwd: this.#folder, ...this.#identity };
    // The server may be asked by any user; it listens on this machine only, and lives as long as the test.
    // Of asynchronous requests the kernel has few, for all servers together.
    const common = [
      '--no-defaults',
      `--datadir=${data}`,
      '--innodb-log-file-size=8M',
      '--skip-innodb-use-native-aio',
    ];
    const install = [...common, '--auth-root-authentication-method=normal'];
    const version = execFileSync('mariadbd', ['--no-defaults', '--version'], { encoding: 'utf8' });
    madeOnce(`${version.trim()}.2.${this.#identity?.uid ?? ''}`, data, () =>
      execFileSync('mariadb-install-db', install, { ...options, stdio: ['ignore', 'ignore', 'pipe'] }),
    );
    const args = [
      ...common,
      `--port=${this.port}`,
      '--bind-address=127.0.0.1',
      `--socket=${join(this.#folder, 'mysqld.sock')}`,
      `--pid-file=${join(this.#folder, 'mysqld.pid')}`,
      '--innodb-flush-log-at-trx-commit=0',
    ];
    const server = spawn('mariadbd', args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
    this.#process = server;
    await new Promise<void>((resolve, reject) => {
      let said = '';
      server.stderr.on('data', (chunk) => {
        said += chunk;
        if (said.includes('ready for connections')) resolve();
      });
      server.once('exit', () => reject(new Error(`MariaDB ended before it was ready: ${said}`)));
    });
  }

  async stop(): Promise<void> {
    if (this.#process !== undefined) await endProcess(this.#process, 'SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
