import { setTimeout as sleep } from 'node:timers/promises';
import { describe, it } from 'vitest';
import { PostgresServer, postgresPrograms } from '../engines/postgres-server.ts';
import { sufferFaults } from './faults.ts';

const bin = postgresPrograms();

describe.skipIf(bin === undefined)('faults around a Postgres', () => {
  it('S1–S8: hold while nodes are paused, networks cut and the server killed', async () => {
    const server = new PostgresServer(bin ?? '');
    await server.start();
    try {
      await sufferFaults({
        address: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
        port: server.port,
        ttlMs: 1000,
        injuries: [
          async () => {
            await server.kill();
            await sleep(1500);
            await server.start();
          },
        ],
      });
    } finally {
      await server.stop();
    }
  }, 180_000);
});
