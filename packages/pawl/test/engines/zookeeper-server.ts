import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../src/clock.ts';
import type { Engine } from '../../src/engines/engine.ts';
import { type ZooKeeperEngineOptions, zookeeperEngine } from '../../src/engines/zookeeper/index.ts';
import { Keeper } from '../../src/engines/zookeeper/keeper.ts';
import { checkOptions } from '../../src/engines/zookeeper/options.ts';
import { endProcess, freePort, installPackage, works } from './server-tools.ts';

/** Of Debian's package; names all it needs besides. */
const JAR = '/usr/share/java/zookeeper.jar';
/** The server counts in these, in ms: the shortest session is two. */
const TICK_MS = 250;
/** How long the server may take to start on a loaded machine, in ms. */
const START_LIMIT_MS = 60_000;

/** The shortest session that the tests' servers grant, in ms. */
export const MIN_TTL_MS = 2 * TICK_MS;
/** The longest. */
export const MAX_TTL_MS = 4_000_000;

/** Whether this machine has ZooKeeper; installs Debian's package where it may. */
export function haveZooKeeper(): boolean {
  const have = () => existsSync(JAR) && works('java', ['-version']);
  if (have()) return true;
  installPackage('zookeeper');
  return have();
}

/** A place in an ensemble. */
interface Member {
  readonly id: number;
  /** The ports on which the members talk to each other, of all of them. */
  readonly ports: readonly (readonly [quorum: number, election: number])[];
}

/** Servers that make one ensemble; they are ready when most of them have been started. */
export async function ensembleOf(size: number): Promise<ZooKeeperServer[]> {
  const ports: [number, number][] = [];
  for (let i = 0; i < size; i += 1) ports.push([await freePort(), await freePort()]);
  return ports.map((_, i) => new ZooKeeperServer({ id: i + 1, ports }));
}

/** A ZooKeeper of the test's own, on a free port and in a directory of its own. */
export class ZooKeeperServer {
  port = 0;
  readonly #member: Member | undefined;
  readonly #folder = mkdtempSync(join(tmpdir(), 'pawl-zookeeper-'));
  #process: ChildProcess | undefined;

  /** @param member where it is one of several. */
  constructor(member?: Member) {
    this.#member = member;
  }

  async start(): Promise<void> {
    if (this.port === 0) this.port = await freePort();
    const dataDir = join(this.#folder, 'data');
    mkdirSync(dataDir, { recursive: true });
    if (this.#member !== undefined) writeFileSync(join(dataDir, 'myid'), `${this.#member.id}`);
    const members = (this.#member?.ports ?? []).map(([quorum, election], i) => [
      `server.${i + 1}`,
      `127.0.0.1:${quorum}:${election}`,
    ]);
    const settings = {
      ...Object.fromEntries(members),
      // In ticks: how long members may take to follow, and how far behind they may be.
      initLimit: 40,
      syncLimit: 20,
      tickTime: TICK_MS,
      dataDir,
      clientPort: this.port,
      clientPortAddress: '127.0.0.1',
      maxClientCnxns: 0,
      maxSessionTimeout: MAX_TTL_MS,
      'admin.enableServer': false,
      '4lw.commands.whitelist': '*',
    };
    const file = join(this.#folder, 'zoo.cfg');
    writeFileSync(
      file,
      Object.entries(settings)
        .map(([name, value]) => `${name}=${value}\n`)
        .join(''),
    );
    const flags = [
      '-Xmx256m',
      '-XX:+UseSerialGC',
      '-XX:TieredStopAtLevel=1',
      '-Dzookeeper.preAllocSize=4096',
    ];
    const main = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';
    const server = spawn('java', [...flags, '-cp', JAR, main, file], { stdio: 'ignore' });
    this.#process = server;
    for (const until = Date.now() + START_LIMIT_MS; ; await sleep(50)) {
      if ((await this.#ask('srvr')).includes('Mode:')) return;
      if (server.exitCode !== null) throw new Error('ZooKeeper ended before it was ready.');
      if (Date.now() > until) throw new Error(`ZooKeeper was not ready within ${START_LIMIT_MS} ms.`);
    }
  }

  async kill(): Promise<void> {
    const server = this.#process;
    if (server === undefined) return;
    this.#process = undefined;
    await endProcess(server, 'SIGKILL');
  }

  /** Stops its process without ending it (`SIGSTOP`), or lets it go on (`SIGCONT`). */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process?.kill(signal);
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Asks with one of the commands of four letters. @returns nothing where the server is not there yet. */
  #ask(command: string): Promise<string> {
    return new Promise((resolve) => {
      let said = '';
      const socket = connect({ port: this.port, host: '127.0.0.1' }, () => socket.write(command));
      socket.on('data', (chunk) => {
        said += chunk;
      });
      socket.on('error', () => {});
      socket.on('close', () => resolve(said));
      socket.setTimeout(1000, () => socket.destroy());
    });
  }
}

/** A store on a server, and what opens it. */
export class ZooKeeperStores {
  readonly server = new ZooKeeperServer();
  readonly #closing: (() => Promise<void>)[] = [];
  #stores = 0;

  /** The address of a store that nobody uses. */
  newStore(port = this.server.port): string {
    this.#stores += 1;
    return `127.0.0.1:${port}/pawl/store-${this.#stores}`;
  }

  openEngine(connect: string, options: Partial<ZooKeeperEngineOptions> = {}): Engine {
    const engine = zookeeperEngine({ connect, minTtlMs: MIN_TTL_MS, ...options });
    this.#closing.push(() => engine.close());
    return engine;
  }

  /** ZooKeeper as anybody else sees it. */
  openKeeper(): Keeper {
    const keeper = new Keeper(checkOptions({ connect: `127.0.0.1:${this.server.port}` }).access, systemClock);
    this.#closing.push(() => keeper.close());
    return keeper;
  }

  /** Closes all that was opened, and then the server. */
  async stop(): Promise<void> {
    for (const close of this.#closing) await close();
    await this.server.stop();
  }
}

/** The path of a store's nodes. */
export function pathOf(connect: string): string {
  return connect.slice(connect.indexOf('/'));
}
