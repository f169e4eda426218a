import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { nowMs } from '../machine-time.ts';
import type { DurableServer } from './durable-server.ts';
import { endProcess, findProgram, freePort } from './programs.ts';

/** How long it may take until it serves, in ms. */
const READY_LIMIT_MS = 30_000;
const LOOK_EVERY_MS = 50;

/** What this machine lacks for an etcd; `undefined` if nothing. */
export function lackForEtcd(): string | undefined {
  return findProgram('etcd') === undefined ? 'etcd is not on PATH' : undefined;
}

/** An etcd of one member. */
export class EtcdServer implements DurableServer {
  port = 0;
  readonly #folder = mkdtempSync(join(tmpdir(), 'pawl-torture-etcd-'));
  #peerPort = 0;
  #process: ChildProcess | undefined;

  async start(): Promise<void> {
    if (this.port === 0) [this.port, this.#peerPort] = [await freePort(), await freePort()];
    const [client, peer] = [`http://127.0.0.1:${this.port}`, `http://127.0.0.1:${this.#peerPort}`];
    const flags = {
      name: 'torture',
      'data-dir': join(this.#folder, 'data'),
      'listen-client-urls': client,
      'advertise-client-urls': client,
      'listen-peer-urls': peer,
      'initial-advertise-peer-urls': peer,
      'initial-cluster': `torture=${peer}`,
      'log-level': 'error',
    };
    const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
    const server = spawn(findProgram('etcd') ?? 'etcd', args, {
      stdio: 'ignore',
      // It asks for this on arm64, where its makers do not test all of it.
      env: { ...process.env, ETCD_UNSUPPORTED_ARCH: 'arm64' },
    });
    this.#process = server;
    server.on('error', () => {});
    for (const untilMs = nowMs() + READY_LIMIT_MS; !(await isHealthy(client)); await sleep(LOOK_EVERY_MS)) {
      if (server.pid === undefined || server.exitCode !== null || server.signalCode !== null) {
        throw new Error('etcd ended before it was ready.');
      }
      if (nowMs() > untilMs) throw new Error(`etcd was not ready within ${READY_LIMIT_MS} ms.`);
    }
  }

  async kill(): Promise<void> {
    await endProcess(this.#process, 'SIGKILL');
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function isHealthy(client: string): Promise<boolean> {
  try {
    const response = await fetch(`${client}/health`, { signal: AbortSignal.timeout(2000) });
    return ((await response.json()) as { health: string }).health === 'true';
  } catch {
    return false;
  }
}
