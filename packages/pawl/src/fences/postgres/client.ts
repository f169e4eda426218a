import { FenceUsageError } from '../errors.ts';

/**
 * What a fence calls on a connection: `Client` and `PoolClient` of `pg` have it. For a query builder it is one line:
 * `{ query: (text) => sql.raw(text).execute(trx) }` in Kysely, `{ query: (text) => tx.execute(sql.raw(text)) }` in Drizzle. The text may be several
 * statements and has no parameters.
 */
export interface PostgresClient {
  query(text: string): Promise<unknown>;
}

/** A connection of a pool. To have all of the driver's own, say so: `async (client: PoolClient) => …`. */
export interface PostgresPoolClient {
  query(
    text: string,
    values?: unknown[],
  ): Promise<{ rows: Record<string, unknown>[]; rowCount: number | null }>;
  release(destroy?: boolean): void;
  on?(event: 'error', listener: (error: Error) => void): unknown;
  off?(event: 'error', listener: (error: Error) => void): unknown;
}

/** What a fence calls on a pool; that of `pg` has it. */
export interface PostgresPool<C extends PostgresPoolClient = PostgresPoolClient> {
  connect(): Promise<C>;
}

/** The rows of an answer. */
export function rowsOf<Row>(answer: unknown): Row[] {
  if (Array.isArray(answer)) return answer as Row[];
  const { rows } = answer as { rows: Row[] };
  return rows;
}

/** A text as an expression that no setting of the connection reads otherwise. */
export function textValue(text: string): string {
  return `convert_from(decode('${Buffer.from(text, 'utf8').toString('hex')}', 'hex'), 'UTF8')`;
}

/** A text as a literal, where an expression may not stand. */
export function literal(text: string): string {
  const quoted = text.replaceAll("'", "''");
  return quoted.includes('\\') ? ` E'${quoted.replaceAll('\\', '\\\\')}'` : `'${quoted}'`;
}

export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** The SQLSTATE of a database's error, also of one that a query builder has wrapped. */
export function databaseError(error: unknown): { code: string; detail: string } | undefined {
  for (let each = error; each instanceof Error; each = each.cause) {
    if (!('code' in each) || typeof each.code !== 'string') continue;
    const detail = 'detail' in each && typeof each.detail === 'string' ? each.detail : '';
    return { code: each.code, detail };
  }
  return undefined;
}

/** Postgres' texts hold no NUL; the fence keeps names between record separators. */
export function checkText(resource: string): void {
  if (!resource.includes('\0') && !resource.includes('\x1e')) return;
  throw new FenceUsageError(
    resource,
    `The name of the fenced resource ${JSON.stringify(resource)} has a character in it that cannot be stored here.`,
  );
}

/** @throws FenceUsageError where it is no plain name. */
export function checkSchema(schema: unknown): asserts schema is string {
  if (typeof schema === 'string' && /^[a-z_][a-z0-9_]{0,39}$/.test(schema)) return;
  throw new FenceUsageError(
    String(schema),
    `The schema of a fence must be a name of lower-case letters, digits and "_", at most 40, but was "${schema}".`,
  );
}
