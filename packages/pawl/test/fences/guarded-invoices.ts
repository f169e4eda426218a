import { Pool, type PoolClient } from 'pg';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { installGuard, type PostgresGuardOptions, postgresFence } from '../../src/fences/postgres/index.ts';
import { PostgresServer } from '../engines/postgres-server.ts';

/** A server with a table `invoices`, made anew for each test, and a fence. */
export class GuardedInvoices {
  readonly fence = postgresFence();
  pool!: Pool;
  readonly #server: PostgresServer;

  /** @param bin where the server's programs are. */
  constructor(bin: string) {
    this.#server = new PostgresServer(bin);
    beforeAll(async () => {
      await this.#server.start();
      this.pool = this.connect('operator');
    }, 60_000);
    afterAll(async () => {
      await this.pool.end();
      await this.#server.stop();
    });
    beforeEach(async () => {
      await this.pool.query('DROP TABLE IF EXISTS invoices CASCADE');
      await this.pool.query(
        'CREATE TABLE invoices (id int PRIMARY KEY, paid int NOT NULL DEFAULT 0, note text)',
      );
      await this.pool.query('INSERT INTO invoices (id) SELECT generate_series(1, 9)');
      await this.fence.migrate(this.pool);
      await this.pool.query('TRUNCATE pawl_fence.unfenced; DELETE FROM pawl_fence.token');
    });
  }

  /** A pool of a program that calls itself so. */
  connect(application_name: string, user = 'postgres'): Pool {
    const { port } = this.#server;
    const pool = new Pool({ host: '127.0.0.1', port, user, database: 'postgres', max: 4, application_name });
    pool.on('error', () => {});
    return pool;
  }

  guard(options: Partial<PostgresGuardOptions> = {}): Promise<void> {
    return installGuard(this.pool, { table: 'invoices', mode: 'enforce', ...options });
  }

  async inTransaction(work: (client: PoolClient) => Promise<unknown>): Promise<void> {
    const client = await this.pool.connect();
    try {
      await client.query('BEGIN');
      await work(client);
      await client.query('COMMIT');
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  }

  async paid(id: number): Promise<number | undefined> {
    const { rows } = await this.pool.query('SELECT paid FROM invoices WHERE id = $1', [id]);
    return rows[0]?.paid;
  }
}

export function pay(
  on: { query(text: string, values: unknown[]): Promise<unknown> },
  id: number,
  value = 1,
): Promise<unknown> {
  return on.query('UPDATE invoices SET paid = $1 WHERE id = $2', [value, id]);
}
