import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { endProcess, freePort, installPackage, works } from '../engines/server-tools.ts';

/** Whether there is a Ceph with its gateway for S3; installs Debian's packages where it may. */
export function haveCeph(): boolean {
  const there = () =>
    ['radosgw', 'ceph-mon', 'ceph-osd', 'ceph'].every((program) => works(program, ['--version']));
  if (there()) return true;
  installPackage('--no-install-recommends radosgw ceph-mon ceph-osd');
  return there();
}

/** A key that any program may use: the server listens on this machine only, and lives as long as the test. */
export const CEPH_KEY = { accessKeyId: 'pawl', secretAccessKey: 'pawl-test' };

/** The smallest Ceph there is, with its data in memory: a monitor, a store and the gateway that speaks S3. */
export class CephServer {
  port = 0;
  readonly #folder = mkdtempSync(join(tmpdir(), 'pawl-ceph-'));
  readonly #processes: ChildProcess[] = [];
  #said = '';

  /** Where it speaks S3. */
  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    this.port = await freePort();
    const monitor = `v2:127.0.0.1:${await freePort()}`;
    const cluster = randomUUID();
    writeFileSync(join(this.#folder, 'ceph.conf'), configuration(this.#folder, cluster, monitor, this.port));
    for (const part of ['mon', 'osd', 'rgw']) mkdirSync(join(this.#folder, part));
    execFileSync('monmaptool', ['--create', '--fsid', cluster, '--addv', 'a', `[${monitor}]`, 'map'], {
      cwd: this.#folder,
      stdio: 'ignore',
    });
    this.#run('ceph-mon', ['--mkfs', '-i', 'a', '--monmap', 'map', '--keyring', '/dev/null']);
    this.#launch('ceph-mon', ['-i', 'a', '-f']);
    const store = randomUUID();
    this.#run('ceph', ['osd', 'new', store]);
    this.#run('ceph-osd', ['-i', '0', '--mkfs', '--osd-uuid', store]);
    this.#launch('ceph-osd', ['-i', '0', '-f']);
    this.#launch('radosgw', ['-n', 'client.rgw', '-f']);
    while (!(await this.#answers())) await wait(100);
    const { accessKeyId, secretAccessKey } = CEPH_KEY;
    const keys = ['--access-key', accessKeyId, '--secret', secretAccessKey];
    this.#run('radosgw-admin', ['user', 'create', '--uid=pawl', '--display-name=pawl', ...keys]);
  }

  async stop(): Promise<void> {
    for (const process of this.#processes) await endProcess(process, 'SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #answers(): Promise<boolean> {
    const ended = this.#processes.find(
      ({ exitCode, signalCode }) => exitCode !== null || signalCode !== null,
    );
    if (ended !== undefined) throw new Error(`${ended.spawnfile} ended before it was ready: ${this.#said}`);
    return fetch(this.endpoint).then(
      ({ ok }) => ok,
      () => false,
    );
  }

  #run(program: string, args: readonly string[]): void {
    execFileSync(program, ['-c', 'ceph.conf', ...args], {
      cwd: this.#folder,
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: 60_000,
    });
  }

  #launch(program: string, args: readonly string[]): void {
    const process = spawn(program, ['-c', 'ceph.conf', ...args], {
      cwd: this.#folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    process.stderr.on('data', (chunk) => {
      this.#said = `${this.#said}${chunk}`.slice(-5000);
    });
    this.#processes.push(process);
  }
}

function configuration(folder: string, cluster: string, monitor: string, port: number): string {
  return `[global]
fsid = ${cluster}
mon host = [${monitor}/0]
mon data = ${folder}/mon
osd data = ${folder}/osd
rgw data = ${folder}/rgw
run dir = ${folder}
admin socket = ${folder}/$name.asok
pid file =
log file =
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = none
auth service required = none
auth client required = none
ms mon client mode = crc
ms mon cluster mode = crc
ms mon service mode = crc
mon data avail crit = 1
mon max pg per osd = 4000
mon allow pool size one = true
osd objectstore = memstore
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
rgw frontends = beast endpoint=127.0.0.1:${port}
rgw thread pool size = 16
`;
}
