import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DurableServer } from './durable-server.ts';
import { endProcess, findProgram, freePort } from './programs.ts';

/** What this machine lacks for a Redis; `undefined` if nothing. */
export function lackForRedis(): string | undefined {
  return findProgram('redis-server') === undefined ? 'redis-server is not on PATH' : undefined;
}

/** A Redis that flushes each write to its disk. */
export class RedisServer implements DurableServer {
  port = 0;
  readonly #folder = mkdtempSync(join(tmpdir(), 'pawl-torture-redis-'));
  #process: ChildProcess | undefined;

  async start(): Promise<void> {
    if (this.port === 0) this.port = await freePort();
    const network = ['--port', `${this.port}`, '--bind', '127.0.0.1'];
    const durable = ['--dir', this.#folder, '--save', '', '--appendonly', 'yes', '--appendfsync', 'always'];
    const server = spawn(findProgram('redis-server') ?? 'redis-server', [...network, ...durable], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    this.#process = server;
    await new Promise<void>((resolve, reject) => {
      let said = '';
      server.stdout.on('data', (chunk) => {
        said = (said + chunk).slice(-1000);
        if (said.includes('Ready to accept connections')) resolve();
      });
      server.once('error', reject);
      server.once('exit', () => reject(new Error(`Redis ended before it was ready: ${said.trim()}`)));
    });
  }

  async kill(): Promise<void> {
    await endProcess(this.#process, 'SIGKILL');
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
