export { type MemoryOnceStore, memoryOnceStore } from './memory-store.ts';
export { type OnceOptions, type OnceRun, once } from './once.ts';
export { type OncePostgresDatabase, type PostgresOnceStore, postgresOnceStore } from './postgres-store.ts';
export { type OnceSqliteDatabase, type SqliteOnceStore, sqliteOnceStore } from './sqlite-store.ts';
export type { BeginOptions, OnceState, OnceStore, UnfinishedRun } from './store.ts';
