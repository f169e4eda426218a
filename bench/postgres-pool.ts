import { Pool } from 'pg';

export function connectPostgres(port: number, max: number): Pool {
  const pool = new Pool({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres', max });
  // A server that is stopped at the end is no error of the bench's.
  pool.on('error', () => {});
  return pool;
}
