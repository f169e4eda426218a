import { mkdtempSync, rmSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { S3 } from '@aws-sdk/client-s3';
import { Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import { dynamodbFence } from '../../packages/pawl/src/fences/dynamodb/index.ts';
import { fileFence } from '../../packages/pawl/src/fences/files/index.ts';
import { fencedFetch, memoryFence, nodeFence } from '../../packages/pawl/src/fences/http/index.ts';
import { mysqlFence } from '../../packages/pawl/src/fences/mysql/index.ts';
import { redisFence } from '../../packages/pawl/src/fences/redis/index.ts';
import { s3Fence } from '../../packages/pawl/src/fences/s3/index.ts';
import { haveRedis, RedisServer } from '../../packages/pawl/test/engines/redis-server.ts';
import { CEPH_KEY, CephServer, haveCeph } from '../../packages/pawl/test/fences/ceph-server.ts';
import {
  createTable,
  DynamodbServer,
  dynamodbClient,
} from '../../packages/pawl/test/fences/dynamodb-server.ts';
import { haveMariadb, MariadbServer } from '../../packages/pawl/test/fences/mariadb-server.ts';
import { compare, report } from './compare.ts';

/* Each compares the fenced write of one resource with the same write without, under a token that was honoured before. */

export async function mysql(token: bigint, rounds: number): Promise<void> {
  if (!haveMariadb()) return console.log('skipped: no MariaDB');
  const server = new MariadbServer();
  await server.start();
  const pool = createPool({ uri: server.address, connectionLimit: 1 });
  try {
    await pool.query('CREATE TABLE invoice (id INT PRIMARY KEY, paid INT NOT NULL)');
    await pool.query('INSERT INTO invoice VALUES (42, 0)');
    const fence = mysqlFence();
    const update = 'UPDATE invoice SET paid = paid + 1 WHERE id = 42';
    const plain = async () => {
      const connection = await pool.getConnection();
      await connection.query('START TRANSACTION');
      await connection.query(update);
      await connection.query('COMMIT');
      connection.release();
    };
    const fenced = () =>
      fence.transaction(pool, 'invoice:42', token, (connection) => connection.query(update));
    report('mysql, transaction', await compare(plain, fenced, rounds));
  } finally {
    await pool.end();
    await server.stop();
  }
}

export async function redis(token: bigint, rounds: number): Promise<void> {
  if (!haveRedis()) return console.log('skipped: no Redis');
  const server = new RedisServer();
  await server.start();
  const client = new Redis(server.port, '127.0.0.1');
  try {
    const fence = redisFence(client);
    const plain = () => client.set('invoice:42', 1);
    const fenced = () => fence.commands('invoice:42', token, [['SET', 'invoice:42', 1]]);
    report('redis, one command', await compare(plain, fenced, rounds));
  } finally {
    client.disconnect();
    await server.stop();
  }
}

export async function file(token: bigint, rounds: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-'));
  try {
    const path = join(folder, 'invoice');
    const fence = fileFence(path);
    const plain = async () => {
      await writeFile(`${path}.new`, 'paid', { flush: true });
      await rename(`${path}.new`, path);
    };
    report('file, replaced', await compare(plain, () => fence.write(token, 'paid'), rounds));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export async function http(token: bigint, rounds: number): Promise<void> {
  const servers: Server[] = [];
  const listen = async (handler: Parameters<typeof createServer>[1]) => {
    const server = createServer(handler);
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  try {
    const open = await listen((_request, response) => void response.end('written'));
    const fenced = await listen(
      nodeFence({ store: memoryFence(), resource: () => 'invoice:42' }, (_request, response) => {
        response.end('written');
      }),
    );
    const put = { method: 'PUT', body: 'paid' };
    const send = fencedFetch({ token });
    const plainly = async () => (await fetch(open, put)).text();
    report(
      'http, fence in memory',
      await compare(plainly, async () => (await send(fenced, put)).text(), rounds),
    );
  } finally {
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
  }
}

export async function dynamodb(token: bigint, rounds: number): Promise<void> {
  const server = new DynamodbServer();
  await server.start();
  const db = dynamodbClient(server.endpoint);
  try {
    await createTable(db, 'invoice');
    const fence = dynamodbFence(db, { table: 'invoice', key: ['id'] });
    const update = {
      Key: { id: { S: '42' } },
      UpdateExpression: 'SET paid = :paid',
      ExpressionAttributeValues: { ':paid': { BOOL: true } },
    };
    const plain = () => db.updateItem({ TableName: 'invoice', ...update });
    report(
      'dynamodb (dynalite), update',
      await compare(plain, () => fence.update('invoice:42', token, update), rounds),
    );
  } finally {
    db.destroy();
    await server.stop();
  }
}

export async function s3(token: bigint, rounds: number): Promise<void> {
  if (!haveCeph()) return console.log('skipped: no Ceph');
  const server = new CephServer();
  await server.start();
  const client = new S3({
    endpoint: server.endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: CEPH_KEY,
  });
  try {
    await client.createBucket({ Bucket: 'invoices' });
    const fence = s3Fence(client, { bucket: 'invoices' });
    const plain = () => client.putObject({ Bucket: 'invoices', Key: 'plain', Body: 'paid' });
    const fenced = () => fence.write('fenced', token, 'paid');
    // Two requests in place of one.
    report('s3 (ceph), put', await compare(plain, fenced, Math.ceil(rounds / 10)));
  } finally {
    client.destroy();
    await server.stop();
  }
}
