export { type HttpResourceOptions, httpResource, type Representation } from './http-resource.ts';
export { type RowChange, type SqlRowOptions, type SqlRunner, type SqlValue, sqlRow } from './sql-row.ts';
export {
  type MysqlLike,
  mysqlRunner,
  type PgLike,
  pgRunner,
  type SqliteLike,
  sqliteRunner,
} from './sql-runners.ts';
export { type Updated, type UpdateOptions, updateIfUnchanged, type Versioned } from './update.ts';
