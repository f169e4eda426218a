import { setTimeout as sleep } from 'node:timers/promises';
import { describe, it } from 'vitest';
import { ensembleOf, haveZooKeeper, ZooKeeperServer } from '../engines/zookeeper-server.ts';
import { sufferFaults } from './faults.ts';

describe.skipIf(!haveZooKeeper())('faults around ZooKeeper', () => {
  it('S1–S8: hold while nodes are paused, networks cut and the only server killed', async () => {
    const server = new ZooKeeperServer();
    await server.start();
    try {
      await sufferFaults({
        address: (port) => `zookeeper://127.0.0.1:${port}/locks?minTtlMs=500`,
        port: server.port,
        ttlMs: 2000,
        injuries: [
          async () => {
            await server.kill();
            await sleep(2000);
            await server.start();
          },
        ],
      });
    } finally {
      await server.stop();
    }
  }, 180_000);

  it('S1–S8: hold while of three servers one is stopped and another killed', async () => {
    const servers = await ensembleOf(3);
    const [first, second, third] = servers;
    if (first === undefined || second === undefined || third === undefined)
      throw new Error('Servers are missing.');
    await Promise.all(servers.map((server) => server.start()));
    const others = [second, third].map(({ port }) => `127.0.0.1:${port}`).join(',');
    try {
      await sufferFaults({
        address: (port) => `zookeeper://127.0.0.1:${port},${others}/locks?minTtlMs=500`,
        port: first.port,
        ttlMs: 2000,
        injuries: [
          async () => {
            second.signal('SIGSTOP');
            await sleep(4000);
            second.signal('SIGCONT');
          },
          async () => {
            await third.kill();
            await sleep(3000);
            await third.start();
          },
        ],
      });
    } finally {
      await Promise.all(servers.map((server) => server.stop()));
    }
  }, 240_000);
});
