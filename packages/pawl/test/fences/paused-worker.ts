/** A worker of the stories of pauses: a real process. Called with a task as JSON; tells its parent by IPC how it goes on. */
import { existsSync } from 'node:fs';
import mysql from 'mysql2/promise';
import { Pool } from 'pg';
import { open } from '../../src/client/open.ts';
import { sqliteEngine } from '../../src/engines/sqlite/index.ts';
import { StaleTokenError } from '../../src/fences/index.ts';
import { mysqlFence } from '../../src/fences/mysql/index.ts';
import { postgresFence } from '../../src/fences/postgres/index.ts';
import { type Account, inFile, inRedis, inSqlite, overHttp } from './paused-accounts.ts';
import type { PausedReport, PausedTask } from './pauses.ts';

const task: PausedTask = JSON.parse(process.argv[2] ?? '{}');

const READ = 'SELECT value FROM account WHERE id = 0';

async function inPostgres(): Promise<Account> {
  const pool = new Pool({ connectionString: task.address });
  const fence = postgresFence();
  const text = 'UPDATE account SET value = $1 WHERE id = 0';
  return {
    raise: (lease) => fence.raise(pool, 'account:0', lease),
    read: async () => (await pool.query(READ)).rows[0].value,
    fencedWrite: (lease, value) =>
      fence.transaction(pool, 'account:0', lease, (client) => client.query(text, [value])),
    write: (value) => pool.query(text, [value]),
    close: () => pool.end(),
  };
}

async function inMysql(): Promise<Account> {
  const pool = mysql.createPool(task.address);
  const fence = mysqlFence();
  const text = 'UPDATE account SET value = ? WHERE id = 0';
  return {
    raise: (lease) => fence.raise(pool, 'account:0', lease),
    read: async () => {
      const [rows] = await pool.query<mysql.RowDataPacket[]>(READ);
      return rows[0]?.value;
    },
    fencedWrite: (lease, value) =>
      fence.transaction(pool, 'account:0', lease, (connection) => connection.query(text, [value])),
    write: (value) => pool.query(text, [value]),
    close: () => pool.end(),
  };
}

const tell = (report: PausedReport) =>
  new Promise<void>((resolve) => process.send?.(report, undefined, undefined, () => resolve()));

const ACCOUNTS = {
  postgres: inPostgres,
  mysql: inMysql,
  sqlite: inSqlite,
  redis: inRedis,
  file: inFile,
  http: overHttp,
  // Loaded only here, since the driver is large.
  s3: async (address: string) => (await import('./paused-aws-accounts.ts')).inS3(address),
  dynamodb: async (address: string) => (await import('./paused-aws-accounts.ts')).inDynamodb(address),
};

const account = await ACCOUNTS[task.database](task.address);
const engine = await sqliteEngine({ path: task.locks });
const pawl = open(engine);
const lease = await pawl.acquire('account:0', { ttlMs: task.ttlMs });
if (task.fenced) await account.raise(lease);
const value = await account.read();
lease.assertHeld();
await tell('checked');
// Neither renewal nor anything else runs until the gate is open, as if all had stopped between the look and the write.
while (task.gate !== undefined && !existsSync(task.gate)) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
}
try {
  await (task.fenced ? account.fencedWrite(lease, value + task.adds) : account.write(value + task.adds));
  await tell('wrote');
} catch (error) {
  if (!(error instanceof StaleTokenError)) throw error;
  await tell('refused');
}
await lease.release().catch(() => {});
await pawl.close();
await engine.close();
await account.close();
process.disconnect();
