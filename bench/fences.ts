/**
 * What a fence costs: the same transaction with it and without, turn by turn in one run, on Postgres and on SQLite, both with a flush for
 * each commit. Run nothing beside it.
 *
 *   node bench/fences.ts [--rounds N]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parseArgs } from 'node:util';
import { Pool, type PoolClient } from 'pg';
import { postgresFence } from '../packages/pawl/src/fences/postgres/index.ts';
import { sqliteFence } from '../packages/pawl/src/fences/sqlite.ts';
import { PostgresServer, postgresPrograms } from '../packages/pawl/test/engines/postgres-server.ts';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '2000' } } });
const ROUNDS = Number(values.rounds);
const GOAL = 1.15;
const TOKEN = 1_000_000n;

await sqlite();
await postgres();

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
      ),
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
    await pool.query('CREATE TABLE invoice (id int PRIMARY KEY, paid int NOT NULL) WITH (fillfactor = 50)');
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
    report('postgres, transaction', await compare(plain, byTransaction));
    report('postgres, fenced in one’s own', await compare(plain, inOwn));
  } finally {
    await pool.end();
    await server.stop();
  }
}

interface Comparison {
  readonly plainMs: number;
  readonly fencedMs: number;
}

/** Turn by turn, so that whatever else happens on the machine hits both. */
async function compare(plain: () => Promise<void>, fenced: () => Promise<void>): Promise<Comparison> {
  const times = { plain: [] as number[], fenced: [] as number[] };
  for (let round = 0; round < ROUNDS * 1.1; round += 1) {
    const order = round % 2 === 0 ? (['plain', 'fenced'] as const) : (['fenced', 'plain'] as const);
    for (const which of order) {
      const startedAt = performance.now();
      await (which === 'plain' ? plain : fenced)();
      if (round > ROUNDS * 0.1) times[which].push(performance.now() - startedAt);
    }
  }
  return { plainMs: median(times.plain), fencedMs: median(times.fenced) };
}

function median(timesMs: number[]): number {
  return timesMs.sort((a, b) => a - b)[Math.floor(timesMs.length / 2)] ?? Number.NaN;
}

function report(what: string, { plainMs, fencedMs }: Comparison): void {
  const ratio = fencedMs / plainMs;
  const verdict = `goal <= ${GOAL}: ${ratio <= GOAL ? 'reached' : 'missed'}`;
  console.log(
    `${what.padEnd(32)} ${plainMs.toFixed(3)} ms without, ${fencedMs.toFixed(3)} ms with: ${ratio.toFixed(2)}   ${verdict}`,
  );
}
