import { setTimeout as sleep } from 'node:timers/promises';
import { describe, it } from 'vitest';
import { haveRedis, RedisServer } from '../engines/redis-server.ts';
import { sufferFaults } from './faults.ts';

describe.skipIf(!haveRedis())('faults around a Redis that flushes every write', () => {
  it('S1–S8: hold while nodes are paused, networks cut and the server killed', async () => {
    const server = new RedisServer();
    await server.start(true);
    try {
      await sufferFaults({
        address: (port) => `redis://127.0.0.1:${port}`,
        port: server.port,
        ttlMs: 1000,
        injuries: [
          async () => {
            await server.kill();
            await sleep(1500);
            await server.start(true);
          },
        ],
      });
    } finally {
      await server.stop();
    }
  }, 180_000);
});
