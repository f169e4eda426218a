/**
 * What a fence costs: the same write with it and without, turn by turn in one run, for each resource whose server is here. The databases flush each
 * commit. There is a goal for SQLite and Postgres. Run nothing beside it.
 *
 *   node bench/fences.ts [--rounds N]   (with much fewer, part of what is measured is how long Node takes to compile)
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parseArgs } from 'node:util';
import { Pool, type PoolClient } from 'pg';
import { columnFence, postgresFence } from '../packages/pawl/src/fences/postgres/index.ts';
import { sqliteFence } from '../packages/pawl/src/fences/sqlite.ts';
import { PostgresServer, postgresPrograms } from '../packages/pawl/test/engines/postgres-server.ts';
import { compare, report } from './fences/compare.ts';
import { dynamodb, file, http, mysql, redis, s3 } from './fences/resources.ts';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5000' } } });
const ROUNDS = Number(values.rounds);
const GOAL = 1.15;
const TOKEN = 1_000_000n;

await sqlite();
await postgres();
for (const resource of [mysql, redis, file, http, dynamodb, s3]) await resource(TOKEN, ROUNDS * 0.4);

async function sqlite(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-'));
  const db = new DatabaseSync(join(folder, 'data.db'));
  try {
    db.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE invoice (id INTEGER PRIMARY KEY, paid INTEGER)',
    );
    db.exec('INSERT INTO invoice VALUES (42, 0)');
    const update = db.prepare('UPDATE invoice SET paid = paid + 1 WHERE id = 42');
    const fence = sqliteFence(db);
    const plain = () => {
      db.exec('BEGIN IMMEDIATE');
      update.run();
      db.exec('COMMIT');
    };
    const fenced = () => {
      fence.transaction('invoice:42', TOKEN, () => update.run());
    };
    report(
      'sqlite, transaction',
      await compare(
        async () => plain(),
        async () => fenced(),
        ROUNDS,
      ),
      GOAL,
    );
  } finally {
    db.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function postgres(): Promise<void> {
  const bin = postgresPrograms();
  if (bin === undefined) return console.log('skipped: no Postgres');
  const server = new PostgresServer(bin);
  await server.start();
  const pool = new Pool({
    host: '127.0.0.1',
    port: server.port,
    user: 'postgres',
    database: 'postgres',
    max: 1,
  });
  try {
    await pool.query(
      'CREATE TABLE invoice (id int PRIMARY KEY, paid int NOT NULL, fence bigint) WITH (fillfactor = 50)',
    );
    await pool.query('INSERT INTO invoice VALUES (42, 0)');
    const update = (client: PoolClient) =>
      client.query('UPDATE invoice SET paid = paid + 1 WHERE id = $1', [42]);
    const fence = postgresFence();
    const plain = async () => {
      const client = await pool.connect();
      await client.query('BEGIN');
      await update(client);
      await client.query('COMMIT');
      client.release();
    };
    const byTransaction = async () => {
      await fence.transaction(pool, 'invoice:42', TOKEN, async (client: PoolClient) => {
        await update(client);
      });
    };
    const inOwn = async () => {
      const client = await pool.connect();
      await client.query('BEGIN');
      await fence.fenced(client, TOKEN, 'invoice:42');
      await update(client);
      await client.query('COMMIT');
      client.release();
    };
    const byBegin = async () => {
      const client = await pool.connect();
      await fence.begin(client, TOKEN, 'invoice:42');
      await update(client);
      await client.query('COMMIT');
      client.release();
    };
    const alone = async () => {
      await pool.query('UPDATE invoice SET paid = paid + 1 WHERE id = $1', [42]);
    };
    const byColumn = async () => {
      const { set, where, values } = columnFence('invoice:42', TOKEN, { position: 2 });
      const text = `UPDATE invoice SET paid = paid + 1, ${set} WHERE id = $1 AND ${where}`;
      await pool.query(text, [42, ...values]);
    };
    report('postgres, transaction', await compare(plain, byTransaction, ROUNDS), GOAL);
    report('postgres, begin', await compare(plain, byBegin, ROUNDS), GOAL);
    report('postgres, one statement, a column', await compare(alone, byColumn, ROUNDS), GOAL);
    // A round trip of its own, for who cannot do otherwise.
    report('postgres, fenced in one’s own', await compare(plain, inOwn, ROUNDS));
  } finally {
    await pool.end();
    await server.stop();
  }
}
