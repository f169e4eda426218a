import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { nowMs } from '../machine-time.ts';
import type { DurableServer } from './durable-server.ts';
import { endProcess, findProgram, freePort } from './programs.ts';

/** Of Debian's package; names all it needs besides. */
const DEBIAN_JAR = '/usr/share/java/zookeeper.jar';
/** The server counts in these, in ms: the shortest session is two. */
const TICK_MS = 250;
/** How long the server may take to start on a loaded machine, in ms. */
const READY_LIMIT_MS = 60_000;
const LOOK_EVERY_MS = 50;

/** What this machine lacks for a ZooKeeper; `undefined` if nothing. */
export function lackForZooKeeper(): string | undefined {
  if (classPath() === undefined) return 'zkServer.sh is not on PATH';
  return findProgram('java') === undefined ? 'java is not on PATH' : undefined;
}

/** A ZooKeeper of one server. */
export class ZooKeeperServer implements DurableServer {
  port = 0;
  readonly #folder = mkdtempSync(join(tmpdir(), 'pawl-torture-zookeeper-'));
  #process: ChildProcess | undefined;

  async start(): Promise<void> {
    if (this.port === 0) this.port = await freePort();
    const dataDir = join(this.#folder, 'data');
    mkdirSync(dataDir, { recursive: true });
    const settings = {
      tickTime: TICK_MS,
      dataDir,
      clientPort: this.port,
      clientPortAddress: '127.0.0.1',
      maxClientCnxns: 0,
      'admin.enableServer': false,
      '4lw.commands.whitelist': 'srvr',
    };
    const file = join(this.#folder, 'zoo.cfg');
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
    writeFileSync(file, lines.join(''));
    const flags = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];
    const main = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';
    const args = [...flags, '-Dzookeeper.preAllocSize=4096', '-cp', classPath() ?? '', main, file];
    const server = spawn(findProgram('java') ?? 'java', args, { stdio: 'ignore' });
    this.#process = server;
    server.on('error', () => {});
    for (const untilMs = nowMs() + READY_LIMIT_MS; !(await this.#serves()); await sleep(LOOK_EVERY_MS)) {
      if (server.pid === undefined || server.exitCode !== null || server.signalCode !== null) {
        throw new Error('ZooKeeper ended before it was ready.');
      }
      if (nowMs() > untilMs) throw new Error(`ZooKeeper was not ready within ${READY_LIMIT_MS} ms.`);
    }
  }

  async kill(): Promise<void> {
    await endProcess(this.#process, 'SIGKILL');
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #serves(): Promise<boolean> {
    return new Promise((resolve) => {
      let said = '';
      const socket = connect({ port: this.port, host: '127.0.0.1' }, () => socket.write('srvr'));
      socket.on('data', (chunk) => {
        said += chunk;
      });
      socket.on('error', () => {});
      socket.on('close', () => resolve(said.includes('Mode:')));
      socket.setTimeout(1000, () => socket.destroy());
    });
  }
}

/** Beside `bin/zkServer.sh`, as its makers pack it, there is `lib` with all that it needs. */
function classPath(): string | undefined {
  const script = findProgram('zkServer.sh');
  const libraries = script === undefined ? undefined : join(dirname(realpathSync(script)), '..', 'lib');
  if (libraries !== undefined && existsSync(libraries)) return join(libraries, '*');
  return existsSync(DEBIAN_JAR) ? DEBIAN_JAR : undefined;
}
