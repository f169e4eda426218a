import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endProcess, freePort, installPackage, works } from './server-tools.ts';

/** Whether this machine has etcd; installs Debian's package where it may. */
export function haveEtcd(): boolean {
  if (works('etcd', ['--version'])) return true;
  installPackage('etcd-server');
  return works('etcd', ['--version']);
}

/** How long a member may take until it serves, in ms. */
const READY_LIMIT_MS = 30_000;

/** Files of PEM. */
export interface EtcdServerTls {
  readonly cert: string;
  readonly key: string;
  /** Who signs the certificates that clients must show. */
  readonly clientCa: string;
}

interface Member {
  readonly client: number;
  readonly secure: number;
  readonly peer: number;
  process: ChildProcess | undefined;
}

/** Members of etcd of the test's own, on free ports and in a directory of their own. */
export class EtcdServer {
  readonly #size: number;
  readonly #tls: EtcdServerTls | undefined;
  readonly #flags: Readonly<Record<string, string>>;
  readonly #folder = mkdtempSync(join(tmpdir(), 'pawl-etcd-'));
  readonly #members: Member[] = [];

  /** @param tls also listens with TLS, on ports of its own. @param flags further ones, by name. */
  constructor(size = 1, tls?: EtcdServerTls, flags: Readonly<Record<string, string>> = {}) {
    this.#size = size;
    this.#tls = tls;
    this.#flags = flags;
  }

  get endpoints(): string[] {
    return this.#members.map(({ client }) => `http://127.0.0.1:${client}`);
  }

  port(member: number): number {
    return this.#member(member).client;
  }

  /** Where a member listens with TLS, on every address of this machine. */
  securePort(member: number): number {
    return this.#member(member).secure;
  }

  async start(): Promise<void> {
    for (let i = 0; i < this.#size; i += 1) {
      const [client, secure, peer] = [await freePort(), await freePort(), await freePort()];
      this.#members.push({ client, secure, peer, process: undefined });
    }
    await Promise.all(this.#members.map((_, i) => this.startMember(i)));
  }

  /** Starts a member, also once more after it was killed, with what it had stored. */
  async startMember(index: number): Promise<void> {
    const member = this.#member(index);
    const cluster = this.#members.map(({ peer }, i) => `member-${i}=http://127.0.0.1:${peer}`).join(',');
    const [client, peer] = [`http://127.0.0.1:${member.client}`, `http://127.0.0.1:${member.peer}`];
    const secure = this.#tls === undefined ? [] : [`https://0.0.0.0:${member.secure}`];
    const flags = {
      name: `member-${index}`,
      'data-dir': join(this.#folder, `member-${index}`),
      'listen-client-urls': [client, ...secure].join(','),
      'advertise-client-urls': client,
      'listen-peer-urls': peer,
      'initial-advertise-peer-urls': peer,
      'initial-cluster': cluster,
      'log-level': 'error',
      ...tlsFlags(this.#tls),
      ...this.#flags,
    };
    const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
    const server = spawn('etcd', args, {
      stdio: 'ignore',
      env: { ...process.env, ETCD_UNSUPPORTED_ARCH: 'arm64' },
    });
    member.process = server;
    let ended = false;
    server.once('exit', () => {
      ended = true;
    });
    const limit = Date.now() + READY_LIMIT_MS;
    while (!(await isHealthy(client))) {
      if (ended) throw new Error('etcd ended before it was ready.');
      if (Date.now() > limit) throw new Error(`etcd was not ready within ${READY_LIMIT_MS} ms.`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async kill(index: number): Promise<void> {
    const server = this.#member(index).process;
    if (server === undefined) return;
    this.#member(index).process = undefined;
    await endProcess(server, 'SIGKILL');
  }

  /** Stops a member's process without ending it (`SIGSTOP`), or lets it go on (`SIGCONT`). */
  signal(index: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#member(index).process?.kill(signal);
  }

  async stop(): Promise<void> {
    for (const i of this.#members.keys()) await this.kill(i);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #member(index: number): Member {
    const member = this.#members[index];
    if (member === undefined) throw new Error(`There is no member ${index}.`);
    return member;
  }
}

/** Asks the first member by its API for JSON. @returns its answer. */
export async function gateway(server: EtcdServer, path: string, body: object, headers = {}): Promise<string> {
  const response = await fetch(`${server.endpoints[0]}/v3/${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  const answer = await response.text();
  if (!response.ok) throw new Error(`etcd answered to ${path} with ${response.status}: ${answer}`);
  return answer;
}

function tlsFlags(tls: EtcdServerTls | undefined): Record<string, string> {
  if (tls === undefined) return {};
  const { cert, key, clientCa } = tls;
  return { 'cert-file': cert, 'key-file': key, 'trusted-ca-file': clientCa, 'client-cert-auth': 'true' };
}

async function isHealthy(client: string): Promise<boolean> {
  try {
    const response = await fetch(`${client}/health`, { signal: AbortSignal.timeout(2000) });
    return ((await response.json()) as { health: string }).health === 'true';
  } catch {
    return false;
  }
}
