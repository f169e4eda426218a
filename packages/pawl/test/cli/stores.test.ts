import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EtcdServer, haveEtcd } from '../engines/etcd-server.ts';
import { PostgresServer, postgresPrograms } from '../engines/postgres-server.ts';
import { haveRedis, RedisServer } from '../engines/redis-server.ts';
import { freePort } from '../engines/server-tools.ts';
import { haveZooKeeper, ZooKeeperServer } from '../engines/zookeeper-server.ts';
import { Bench } from './cli.ts';

const bench = new Bench();

interface Store {
  readonly name: string;
  readonly have: () => boolean;
  readonly server: () => { start(): Promise<void>; stop(): Promise<void> };
  readonly address: (server: never) => string;
  /** What has to be said about a server as the tests run it. */
  readonly finding: RegExp;
}

const bin = postgresPrograms();
const STORES: readonly Store[] = [
  {
    name: 'postgres',
    have: () => bin !== undefined,
    server: () => new PostgresServer(bin ?? ''),
    address: ({ port }: PostgresServer) => `postgres://postgres@127.0.0.1:${port}/postgres`,
    finding: /ok +fsync on/,
  },
  {
    name: 'redis',
    have: haveRedis,
    server: () => new RedisServer(),
    address: ({ port }: RedisServer) => `redis://127.0.0.1:${port}`,
    finding: /warning +appendonly no: a restart forgets/,
  },
  {
    name: 'etcd',
    have: haveEtcd,
    server: () => new EtcdServer(),
    address: (server: EtcdServer) => `etcd://127.0.0.1:${server.port(0)}/my/locks`,
    finding: /warning +members 1: it survives the loss of no member/,
  },
  {
    name: 'zookeeper',
    have: haveZooKeeper,
    server: () => new ZooKeeperServer(),
    address: ({ port }: ZooKeeperServer) => `zookeeper://127.0.0.1:${port}/my/locks`,
    finding: /warning +servers 1: it survives the loss of no server/,
  },
];

describe.each(STORES.map((store) => [store.name, store] as const))('--db with %s', (name, store) => {
  const have = store.have();
  const server = have ? store.server() : undefined;
  let address = '';
  beforeAll(async () => {
    await server?.start();
    address = server === undefined ? '' : store.address(server as never);
  }, 90_000);
  afterAll(() => server?.stop());

  it.skipIf(!have)('every command works on it', async () => {
    expect(await bench.run('migrate', '--db', address)).toMatchObject({
      code: 0,
      stdout: `The ${name} store is ready.\n`,
    });
    const run = await bench.run('run', 'deploy', '--db', address, '--', 'sh', '-c', 'echo "$PAWL_TOKEN"');
    expect(run, run.stderr).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\n$/) });
    const floor = await bench.run('token-floor', '--at-least', '4000000000000000000', '--db', address);
    expect(floor, floor.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining('Raised') });
    const next = await bench.run('run', 'deploy', '--db', address, '--', 'sh', '-c', 'echo "$PAWL_TOKEN"');
    expect(BigInt(next.stdout.trim())).toBeGreaterThan(4_000_000_000_000_000_000n);
    expect(await bench.run('ls', '--db', address)).toMatchObject({ code: 0, stdout: 'No lock is in use.\n' });
    const engines = await bench.run('engines', '--db', address);
    expect(engines, engines.stderr).toMatchObject({ code: 0, stdout: expect.stringMatching(store.finding) });
    const data = JSON.parse((await bench.run('engines', '--json', '--db', address)).stdout);
    expect(data).toMatchObject({ guarantees: { engine: name }, findings: expect.any(Array) });
  });
});

it('an address of no known kind is refused, without showing its password', async () => {
  const result = await bench.run('ls', '--db', 'mysql://root:secret@db/x');
  expect(result).toMatchObject({ code: 64, stderr: expect.stringContaining('postgres://') });
  expect(result.stderr).not.toContain('secret');
});

it.each([
  'postgres://postgres@127.0.0.1:PORT/x',
  'redis://127.0.0.1:PORT',
  'etcd://127.0.0.1:PORT',
  'zookeeper://127.0.0.1:PORT',
])('L5: where nobody listens at %s it says so and does not hang', async (form) => {
  const address = form.replace('PORT', String(await freePort()));
  const result = await bench.run('run', 'x', '--wait', '0', '--db', address, '--', 'true');
  expect(result).toMatchObject({ code: 69 });
});
