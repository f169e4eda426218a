import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe } from 'vitest';
import { bearerOf, memoryFence, nodeFence } from '../../src/fences/http/index.ts';
import { haveRedis, RedisServer } from '../engines/redis-server.ts';
import { tellPauses } from './pauses.ts';

/* The stories of real pauses for what needs no server, or is quickly there; the others have theirs in their own tests. */

describe.skipIf(!haveRedis())('an account in Redis', () => {
  const server = new RedisServer();
  let redis: Redis;
  beforeAll(async () => {
    await server.start();
    redis = new Redis(server.port, '127.0.0.1');
  }, 60_000);
  afterAll(async () => {
    redis?.disconnect();
    await server.stop();
  });

  tellPauses('redis', () => ({
    address: `redis://127.0.0.1:${server.port}`,
    balance: async () => Number(await redis.get('account:0')),
    reset: async () => {
      await redis.flushall();
      await redis.set('account:0', 100);
    },
  }));
});

describe('an account in SQLite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-paused-sqlite-'));
  const address = join(folder, 'data.db');
  const db = new DatabaseSync(address, { timeout: 30_000 });
  db.exec('PRAGMA journal_mode = WAL; CREATE TABLE account (id INTEGER PRIMARY KEY, value INTEGER NOT NULL)');
  afterAll(() => {
    db.close();
    rmSync(folder, { recursive: true, force: true });
  });

  tellPauses('sqlite', () => ({
    address,
    balance: async () => Number(db.prepare('SELECT value FROM account WHERE id = 0').get()?.value),
    reset: async () => {
      db.exec('DROP TABLE IF EXISTS pawl_fence; INSERT OR REPLACE INTO account VALUES (0, 100)');
    },
  }));
});

describe('an account in a file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-paused-file-'));
  const address = join(folder, 'account');
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  tellPauses('file', () => ({
    address,
    balance: async () => Number(readFileSync(address, 'utf8')),
    reset: async () => {
      rmSync(`${address}.pawl-fence`, { force: true });
      writeFileSync(address, '100');
    },
  }));
});

describe('an account behind a server', () => {
  let server: Server;
  let balance = 0;
  let data = memoryFence();
  beforeAll(async () => {
    const resource = ({ url }: IncomingMessage) => (url === '/open' ? undefined : 'account:0');
    const store = { raise: (...args: Parameters<typeof data.raise>) => data.raise(...args) };
    server = createServer(
      nodeFence({ store, resource }, async (request, response) => {
        let body = '';
        for await (const chunk of request) body += chunk;
        if (request.url === '/fenced') data.raise('account:0', bearerOf(request.headers['fencing-token']));
        if (body !== '') balance = Number(body);
        response.end(`${balance}`);
      }),
    );
    // The connection of the stopped process has to be there when it goes on.
    server.keepAliveTimeout = 600_000;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  tellPauses('http', () => ({
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    balance: async () => balance,
    reset: async () => {
      data = memoryFence();
      balance = 100;
    },
  }));
});
