import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endProcess, freePort, installPackage, works } from './server-tools.ts';

/** Whether this machine has Redis; installs Debian's package where it may. */
export function haveRedis(): boolean {
  if (works('redis-server', ['--version'])) return true;
  installPackage('redis-server');
  return works('redis-server', ['--version']);
}

/** A Redis of the test's own, on a free port and in a directory of its own. */
export class RedisServer {
  port = 0;
  readonly #folder = mkdtempSync(join(tmpdir(), 'pawl-redis-'));
  #process: ChildProcess | undefined;

  /** @param persistent whether it flushes each write to its disk; @param more flags. */
  async start(persistent = false, more: readonly string[] = []): Promise<void> {
    if (this.port === 0) this.port = await freePort();
    const persistence = persistent
      ? ['--appendonly', 'yes', '--appendfsync', 'always']
      : ['--appendonly', 'no'];
    const args = [
      '--port',
      `${this.port}`,
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--dir',
      this.#folder,
      ...persistence,
      ...more,
    ];
    const server = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#process = server;
    await new Promise<void>((resolve, reject) => {
      server.stdout.on('data', (chunk) => {
        if (String(chunk).includes('Ready to accept connections')) resolve();
      });
      server.once('exit', () => reject(new Error('Redis ended before it was ready.')));
    });
  }

  async kill(): Promise<void> {
    const server = this.#process;
    if (server === undefined) return;
    this.#process = undefined;
    await endProcess(server, 'SIGKILL');
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
