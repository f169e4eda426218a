import type { Contestant } from '../contestant.ts';
import { connectPostgres } from '../postgres-pool.ts';

/** A Postgres as it comes allows 100 connections. */
const MOST_CONNECTIONS = 90;

/** Postgres' advisory locks: each holder and each waiter keeps a connection of the pool. */
export function advisoryLocks(name: string, port: number): Contestant {
  return {
    name,
    kind: 'peer',
    waits: `queue of Postgres' (a connection each, ${MOST_CONNECTIONS} at most)`,
    connect: async () => {
      const pool = connectPostgres(port, MOST_CONNECTIONS);
      return {
        acquire: async (lock) => {
          const connection = await pool.connect();
          await connection.query({
            name: 'lock',
            text: 'SELECT pg_advisory_lock(hashtextextended($1, 0))',
            values: [lock],
          });
          return async () => {
            await connection.query({
              name: 'unlock',
              text: 'SELECT pg_advisory_unlock(hashtextextended($1, 0))',
              values: [lock],
            });
            connection.release();
          };
        },
        close: () => pool.end(),
      };
    },
  };
}
