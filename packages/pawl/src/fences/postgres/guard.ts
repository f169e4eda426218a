import { FenceUsageError } from '../errors.ts';
import type { GuardMode, GuardOptions, GuardReport, GuardState, UnfencedWrites } from '../guard.ts';
import { columnsOf, type PatternPart, parseResourcePattern } from '../resource-pattern.ts';
import {
  checkSchema,
  checkText,
  identifier,
  literal,
  type PostgresClient,
  rowsOf,
  textValue,
} from './client.ts';
import { DEFAULT_SCHEMA, isPrepared, prepareSchema } from './schema.ts';

export interface PostgresGuardOptions extends GuardOptions {
  /** As for the fence; `pawl_fence` unless set. */
  readonly schema?: string;
  /** How long to wait for writers that are under way, while others wait behind; 5,000 unless set. */
  readonly lockTimeoutMs?: number;
}

/** The last to see a row, after other triggers have changed it: they fire in the order of their names. */
const NAME = 'zzz_pawl_guard';
const EVENTS = ['', '_insert', '_update', '_delete', '_truncate'];

/**
 * Puts a guard on a table, or changes the one that is there, in one step. From then on every write of a transaction that has not called the
 * fence is recorded or refused, whoever wrote the SQL. It needs the rights of the table's owner.
 *
 * A guard without columns in its `resource` looks once for each statement; one with columns, and one on a partitioned table, at each row.
 *
 * @param client outside a transaction, or a pool.
 * @throws FenceUsageError where there is no such table or column; FenceVersionError.
 */
export async function installGuard(client: PostgresClient, options: PostgresGuardOptions): Promise<void> {
  const { table, resource, mode, schema = DEFAULT_SCHEMA, lockTimeoutMs = 5000 } = options;
  checkSchema(schema);
  checkMode(table, mode);
  const pattern = resource === undefined ? undefined : parseResourcePattern(resource);
  if (resource !== undefined) checkText(resource);
  if (!Number.isInteger(lockTimeoutMs) || lockTimeoutMs < 0) {
    throw new FenceUsageError(table, 'lockTimeoutMs must be a whole number of ms.');
  }
  await prepareSchema(client, schema);
  const found = await findTable(client, table);
  for (const column of columnsOf(pattern ?? [])) {
    if (!found.columns.includes(column)) {
      throw new FenceUsageError(
        table,
        `${found.name} has no column "${column}"; it has ${found.columns.join(', ')}.`,
      );
    }
  }
  const action = `EXECUTE FUNCTION ${schema}.guard(${literal(mode)}, ${literal(resource ?? '')})`;
  const trigger = (event: string, when: string, level: string, lacks: string) =>
    `CREATE TRIGGER ${NAME}${event} BEFORE ${when} ON ${found.name} FOR EACH ${level} WHEN (${lacks}) ${action}`;
  const lacks = (row: string) => `${schema}.lacks(${resourceValue(pattern, row)})`;
  const perRow = found.partitioned || columnsOf(pattern ?? []).length > 0;
  // No token is that of all rows, so a pattern with columns lets nobody truncate.
  const truncate = columnsOf(pattern ?? []).length > 0 ? 'true' : lacks('');
  const triggers = perRow
    ? [
        trigger('_insert', 'INSERT', 'ROW', lacks('NEW')),
        trigger('_update', 'UPDATE', 'ROW', `${lacks('OLD')} OR ${lacks('NEW')}`),
        trigger('_delete', 'DELETE', 'ROW', lacks('OLD')),
        trigger('_truncate', 'TRUNCATE', 'STATEMENT', truncate),
      ]
    : [trigger('', 'INSERT OR UPDATE OR DELETE OR TRUNCATE', 'STATEMENT', lacks(''))];
  const inTime = `SET LOCAL lock_timeout = ${lockTimeoutMs}`;
  // By itself, since who has written to the table may be waiting for the fence.
  await client.query(`${inTime}; SELECT ${schema}.first_guard()`);
  await client.query([inTime, ...drops(found.name), ...triggers].join('; '));
}

/**
 * Takes the guard off a table and forgets what it has recorded. Nothing happens where there is none.
 *
 * @throws FenceUsageError where there is no such table.
 */
export async function removeGuard(
  client: PostgresClient,
  options: { readonly table: string; readonly schema?: string },
): Promise<void> {
  const { table, schema = DEFAULT_SCHEMA } = options;
  checkSchema(schema);
  const { name } = await findTable(client, table);
  if (!(await isPrepared(client, schema))) return;
  const forget = `DELETE FROM ${schema}.unfenced WHERE relation = ${textValue(name)}`;
  await client.query([...drops(name), forget].join('; '));
}

/** What guards there are, and which writes they have let pass although they were not fenced. */
export async function guardReport(
  client: PostgresClient,
  options: { readonly schema?: string } = {},
): Promise<GuardReport> {
  const { schema = DEFAULT_SCHEMA } = options;
  checkSchema(schema);
  // To ask makes nothing.
  if (!(await isPrepared(client, schema))) return { guards: [], unfenced: [] };
  await prepareSchema(client, schema);
  await foldRecords(client, schema);
  const guards = rowsOf<{ name: string; arguments: string }>(
    await client.query(
      `SELECT DISTINCT format('%I.%I', n.nspname, c.relname) AS name, encode(t.tgargs, 'hex') AS arguments
       FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE t.tgfoid = to_regprocedure('${schema}.guard()') AND NOT c.relispartition ORDER BY 1`,
    ),
  );
  const records = rowsOf<Recorded>(
    await client.query(
      `SELECT relation, operation, reason, application, role, query, sum(count)::text AS count,
         (extract(epoch FROM min(first_at)) * 1000)::float8 AS first_ms, (extract(epoch FROM max(last_at)) * 1000)::float8 AS last_ms
       FROM ${schema}.unfenced GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY sum(count) DESC, 1, 2, 6`,
    ),
  );
  return { guards: guards.map(guardState), unfenced: records.map(unfencedWrites) };
}

interface Recorded {
  readonly relation: string;
  readonly operation: UnfencedWrites['operation'];
  readonly reason: UnfencedWrites['reason'];
  readonly application: string;
  readonly role: string;
  readonly query: string;
  readonly count: string;
  readonly first_ms: number;
  readonly last_ms: number;
}

function unfencedWrites(each: Recorded): UnfencedWrites {
  return {
    table: each.relation,
    operation: each.operation,
    reason: each.reason,
    application: each.application === '' ? undefined : each.application,
    role: each.role,
    query: each.query,
    row: undefined,
    count: Number(each.count),
    firstAt: new Date(Number(each.first_ms)),
    lastAt: new Date(Number(each.last_ms)),
  };
}

/** The arguments of a trigger are texts that each end with a NUL. */
function guardState(found: { name: string; arguments: string }): GuardState {
  const [mode, resource = ''] = Buffer.from(found.arguments, 'hex').toString('utf8').split('\0');
  return {
    table: found.name,
    mode: mode as GuardMode,
    resource: resource === '' ? undefined : resource,
  };
}

/** Where writers could only add records they are many; one statement makes one of those that are alike. */
async function foldRecords(client: PostgresClient, schema: string): Promise<void> {
  await client.query(
    `WITH alike AS (SELECT path FROM ${schema}.unfenced GROUP BY path HAVING count(*) > 100),
       gone AS (DELETE FROM ${schema}.unfenced u USING alike WHERE u.path = alike.path AND u.id IN
         (SELECT id FROM ${schema}.unfenced WHERE path IN (SELECT path FROM alike) FOR UPDATE SKIP LOCKED) RETURNING u.*)
     INSERT INTO ${schema}.unfenced (path, relation, operation, reason, application, role, query, count, first_at, last_at)
       SELECT path, relation, operation, reason, application, role, query, sum(count), min(first_at), max(last_at)
       FROM gone GROUP BY 1, 2, 3, 4, 5, 6, 7`,
  );
}

/** The resource that a write needs, as an expression. A row without a value has no resource, and nobody a token for it. */
function resourceValue(pattern: readonly PatternPart[] | undefined, row: string): string {
  if (pattern === undefined) return 'NULL';
  const parts = pattern.map((part) =>
    'text' in part ? literal(part.text) : `${row}.${identifier(part.column)}::text`,
  );
  return `coalesce(${parts.join(' || ')}, '')`;
}

function drops(name: string): string[] {
  return EVENTS.map((event) => `DROP TRIGGER IF EXISTS ${NAME}${event} ON ${name}`);
}

interface FoundTable {
  /** With its schema, quoted. */
  readonly name: string;
  readonly partitioned: boolean;
  readonly columns: readonly string[];
}

async function findTable(client: PostgresClient, table: unknown): Promise<FoundTable> {
  if (typeof table !== 'string' || table === '')
    throw new FenceUsageError(String(table), 'table must be a name.');
  checkText(table);
  const [found] = rowsOf<{ name: string; kind: string; columns: string[] }>(
    await client.query(
      `SELECT format('%I.%I', n.nspname, c.relname) AS name, c.relkind::text AS kind, ARRAY(
         SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum) AS columns
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(${textValue(table)})`,
    ),
  );
  if (found === undefined || (found.kind !== 'r' && found.kind !== 'p')) {
    throw new FenceUsageError(table, `There is no table ${table} to guard in this database.`);
  }
  return { name: found.name, partitioned: found.kind === 'p', columns: found.columns };
}

function checkMode(table: string, mode: unknown): void {
  if (mode === 'audit' || mode === 'enforce') return;
  throw new FenceUsageError(table, `The mode of a guard is "audit" or "enforce", but was "${mode}".`);
}
