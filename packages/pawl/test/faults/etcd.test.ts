import { setTimeout as sleep } from 'node:timers/promises';
import { describe, it } from 'vitest';
import { EtcdServer, haveEtcd } from '../engines/etcd-server.ts';
import { sufferFaults } from './faults.ts';

describe.skipIf(!haveEtcd())('faults around etcd', () => {
  it('S1–S8: hold while nodes are paused, networks cut and the only member killed', async () => {
    const server = new EtcdServer();
    await server.start();
    try {
      await sufferFaults({
        address: (port) => `etcd://127.0.0.1:${port}`,
        port: server.port(0),
        ttlMs: 2000,
        injuries: [
          async () => {
            await server.kill(0);
            await sleep(2000);
            await server.startMember(0);
          },
        ],
      });
    } finally {
      await server.stop();
    }
  }, 180_000);

  it('S1–S8, L5: hold while of three members one is stopped, one killed, and two killed', async () => {
    const server = new EtcdServer(3);
    await server.start();
    const others = [1, 2].map((member) => `127.0.0.1:${server.port(member)}`).join(',');
    try {
      await sufferFaults({
        address: (port) => `etcd://127.0.0.1:${port},${others}`,
        port: server.port(0),
        ttlMs: 2000,
        injuries: [
          async () => {
            server.signal(1, 'SIGSTOP');
            await sleep(4000);
            server.signal(1, 'SIGCONT');
          },
          async () => {
            await server.kill(2);
            await sleep(3000);
            await server.startMember(2);
          },
          async () => {
            await Promise.all([server.kill(0), server.kill(1)]);
            await sleep(3000);
            await Promise.all([server.startMember(0), server.startMember(1)]);
          },
        ],
      });
    } finally {
      await server.stop();
    }
  }, 240_000);
});
