export type { Bearer } from '../bearer.ts';
export type { GuardMode, GuardReport, GuardState, UnfencedReason, UnfencedWrites } from '../guard.ts';
export type { PostgresClient, PostgresPool, PostgresPoolClient } from './client.ts';
export { type ColumnFence, columnFence, type PostgresReader } from './column-fence.ts';
export { type PostgresFence, type PostgresFenceOptions, postgresFence } from './fence.ts';
export { guardReport, installGuard, type PostgresGuardOptions, removeGuard } from './guard.ts';
