/** What a fence calls on a connection or pool: those of `mysql2/promise` have it, for MySQL and MariaDB. */
export interface MysqlClient {
  query(sql: string, values?: unknown[]): Promise<[unknown, ...unknown[]]>;
}

/** A connection of a pool. */
export interface MysqlPoolConnection extends MysqlClient {
  release(): void;
  destroy(): void;
}

/** What a fence calls on a pool; that of `mysql2/promise` has it. */
export interface MysqlPool<C extends MysqlPoolConnection = MysqlPoolConnection> {
  getConnection(): Promise<C>;
}

/** What the server says of a statement that returns no rows. */
export interface MysqlHeader {
  readonly insertId: number | string;
  /** Bits: whether a transaction is open, and whether a statement outside of one is one by itself. */
  readonly serverStatus?: number;
}

const IN_TRANSACTION = 1;
const AUTOCOMMIT = 2;

export function isInTransaction({ serverStatus = 0 }: MysqlHeader): boolean {
  return (serverStatus & IN_TRANSACTION) !== 0;
}

export function isAutocommit({ serverStatus = 0 }: MysqlHeader): boolean {
  return (serverStatus & AUTOCOMMIT) !== 0;
}

/** The number of a server's error, 0 where it is none. */
export function errorNumber(error: unknown): number {
  return error instanceof Error && 'errno' in error && typeof error.errno === 'number' ? error.errno : 0;
}

export function identifier(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}
