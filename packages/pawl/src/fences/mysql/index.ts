export type { Bearer } from '../bearer.ts';
export type { MysqlClient, MysqlPool, MysqlPoolConnection } from './client.ts';
export { type ColumnFence, columnFence } from './column-fence.ts';
export { type MysqlFence, type MysqlFenceOptions, mysqlFence } from './fence.ts';
