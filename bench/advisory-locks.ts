import type { Contestant } from './contestant.ts';
import { connectPostgres } from './postgres-pool.ts';

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
          const call = async (text: string, name: string) => {
            try {
              await connection.query({ name, text, values: [lock] });
            } catch (error) {
              // The lock ends with its connection.
              connection.release(true);
              throw error;
            }
          };
          connection.on('error', ignore);
          await call('SELECT pg_advisory_lock(hashtextextended($1, 0))', 'lock');
          return async () => {
            await call('SELECT pg_advisory_unlock(hashtextextended($1, 0))', 'unlock');
            connection.off('error', ignore).release();
          };
        },
        close: () => pool.end(),
      };
    },
  };
}

/** A connection that is lost says so at its next query too. */
function ignore(): void {}
