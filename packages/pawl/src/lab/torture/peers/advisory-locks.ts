import { loadPackage } from '../packages.ts';
import type { OpenPeer } from './peer.ts';

interface Connection {
  query(query: { readonly text: string; readonly values: readonly string[] }): Promise<unknown>;
  on(event: 'error', listener: () => void): unknown;
  off(event: 'error', listener: () => void): unknown;
  /** @param destroy whether it is of no more use. */
  release(destroy?: boolean): void;
}

interface Pg {
  readonly default: {
    readonly Pool: new (options: {
      readonly host: string;
      readonly port: number;
      readonly user: string;
      readonly database: string;
    }) => {
      connect(): Promise<Connection>;
      on(event: 'error', listener: () => void): unknown;
      end(): Promise<void>;
    };
  };
}

/** Postgres' advisory locks by `pg`: whoever holds or waits keeps a connection. They have no TTL: a lock ends with its connection. */
export const advisoryLocks: OpenPeer = async ([port = 0]) => {
  const { Pool } = (await loadPackage<Pg>('pg')).default;
  const pool = new Pool({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' });
  pool.on('error', ignore);
  return {
    acquire: async (lock) => {
      const connection = await pool.connect();
      const call = async (text: string) => {
        try {
          await connection.query({ text, values: [lock] });
        } catch (error) {
          connection.release(true);
          throw error;
        }
      };
      connection.on('error', ignore);
      await call('SELECT pg_advisory_lock(hashtextextended($1, 0))');
      return async () => {
        await call('SELECT pg_advisory_unlock(hashtextextended($1, 0))');
        connection.off('error', ignore);
        connection.release();
      };
    },
    close: () => pool.end(),
  };
};

/** A connection that is lost says so at its next query too. */
function ignore(): void {}
