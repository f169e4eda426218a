import { FenceVersionError } from '../errors.ts';
import { type PostgresClient, rowsOf } from './client.ts';
import { guardFunctions } from './guard-functions.ts';

/** Where the fences keep their state unless told otherwise. */
export const DEFAULT_SCHEMA = 'pawl_fence';

/** The format of the tables; a newer Pawl that changes them counts up. */
const FORMAT = 1;

/** SQLSTATEs of the fence's own. */
export const STALE = 'PW001';
export const MISSING = 'PW002';
export const JUMP = 'PW003';
export const BAD_NAME = 'PW004';

/**
 * `honour` is the fence itself, so that programs in any language can use it: it raises the resource to the token, or fails and with it the whole
 * transaction, so that a refusal that nobody looks at undoes the write too. `at_least` is what must have been honoured already.
 *
 * Whoever honours keeps a lock on the resource's row to the end of its transaction, so that no raise comes between check and effect. With the
 * token that stands there already it is a shared lock: those who hold with one token may write side by side. It is never first shared and
 * then exclusive, which would be a deadlock of two. Whoever waits for a shared lock, and finds a higher token when he gets it, has it all the same,
 * though Postgres does not show him the row: so a token is refused for being lower before the row is locked for good.
 *
 * The tokens that a transaction carries stand in a setting that ends with it, for the guards: a list of number of the transaction, token and
 * resource, between record separators. With the number, so that a setting that somebody made for the whole session counts for nothing. The setting
 * costs as much as half the check, so it is made for the token that stands there already only once there has been a guard.
 *
 * Who waited for another to make the tables has an old picture of the catalog, which Postgres renews only when a table is opened: so one is, before
 * the schema is looked for.
 *
 * It is a procedure, which costs a third of what a function does, and has as few expressions as can be: each is set up anew in each transaction. So
 * what is rare stands apart.
 */
function tables(schema: string): string {
  const carry = `set_config('${schema}.tokens',
    concat(current_setting('${schema}.tokens', true), chr(30), txid_current(), ' ', of_token, ' ', of_resource, chr(30)), true)`;
  return `
SELECT pg_advisory_xact_lock(hashtext('pawl fence ' || '${schema}'));
SELECT FROM pg_catalog.pg_namespace LIMIT 1;
CREATE SCHEMA IF NOT EXISTS ${schema};
CREATE TABLE IF NOT EXISTS ${schema}.meta (id int PRIMARY KEY CHECK (id = 1), format int NOT NULL);
CREATE TABLE IF NOT EXISTS ${schema}.token (
  resource text COLLATE "C" PRIMARY KEY, token bigint NOT NULL, guarded boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS ${schema}.unfenced (
  id bigserial PRIMARY KEY, path text NOT NULL, relation text NOT NULL, operation text NOT NULL, reason text NOT NULL, application text NOT NULL,
  role text NOT NULL, query text NOT NULL, count bigint NOT NULL, first_at timestamptz NOT NULL, last_at timestamptz NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS unfenced_path ON ${schema}.unfenced (path);
INSERT INTO ${schema}.meta VALUES (1, ${FORMAT}) ON CONFLICT DO NOTHING;

CREATE OR REPLACE PROCEDURE ${schema}.honour(of_resource text, of_token bigint) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM ${schema}.token t WHERE t.resource = of_resource AND t.token = of_token AND NOT t.guarded FOR SHARE;
  IF NOT FOUND THEN
    CALL ${schema}.honour(of_resource, of_token, 0);
  END IF;
END $$;

CREATE OR REPLACE PROCEDURE ${schema}.honour(of_resource text, of_token bigint, at_least bigint) LANGUAGE plpgsql AS $$
DECLARE
  highest bigint;
  is_guarded boolean;
BEGIN
  SELECT t.guarded INTO is_guarded FROM ${schema}.token t
    WHERE t.resource = of_resource AND t.token = of_token FOR SHARE;
  IF is_guarded THEN
    PERFORM ${carry};
  ELSIF NOT FOUND THEN
    IF of_resource IS NULL OR of_token IS NULL OR of_token < 1 THEN
      RAISE EXCEPTION USING ERRCODE = '${MISSING}', MESSAGE = format('"%s" is fenced, but no token was given', of_resource);
    END IF;
    IF of_resource = '' OR strpos(of_resource, chr(30)) > 0 THEN
      RAISE EXCEPTION USING ERRCODE = '${BAD_NAME}', MESSAGE = format('"%s" is no name of a fenced resource', of_resource);
    END IF;
    IF at_least > 0 AND NOT EXISTS (SELECT FROM ${schema}.token t WHERE t.resource = of_resource AND t.token >= at_least) THEN
      SELECT t.token INTO highest FROM ${schema}.token t WHERE t.resource = of_resource;
      RAISE EXCEPTION USING ERRCODE = '${JUMP}', DETAIL = coalesce(highest::text, ''),
        MESSAGE = format('"%s" refused token %s, since nothing vouches for one so high', of_resource, of_token);
    END IF;
    SELECT t.token INTO highest FROM ${schema}.token t WHERE t.resource = of_resource AND t.token > of_token;
    IF NOT FOUND THEN
      INSERT INTO ${schema}.token AS t (resource, token) VALUES (of_resource, of_token)
        ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE excluded.token >= t.token;
      IF NOT FOUND THEN
        SELECT t.token INTO highest FROM ${schema}.token t WHERE t.resource = of_resource;
      END IF;
    END IF;
    IF highest IS NOT NULL THEN
      RAISE EXCEPTION USING ERRCODE = '${STALE}', DETAIL = highest::text,
        MESSAGE = format('"%s" refused token %s, since it has honoured %s: another holder came after this one', of_resource, of_token, highest),
        HINT = 'Stop, and acquire the lock again.';
    END IF;
    PERFORM ${carry};
  END IF;
END $$;
${guardFunctions(schema)}`;
}

/** Whether somebody has made the tables. */
export async function isPrepared(client: PostgresClient, schema: string): Promise<boolean> {
  const answer = await client.query(`SELECT to_regclass('${schema}.meta')::text AS meta`);
  return rowsOf<{ meta: string | null }>(answer)[0]?.meta != null;
}

/** Whether the tables are there for good: made by a transaction that is not the present one. */
export type Readiness = 'for good' | 'in this transaction';

/**
 * Makes the tables and functions if they are not there, as part of the transaction if there is one. Several may do so at once.
 *
 * @throws FenceVersionError where a newer Pawl made them.
 */
export async function prepareSchema(client: PostgresClient, schema: string): Promise<Readiness> {
  const made = !(await isPrepared(client, schema));
  if (made) await client.query(tables(schema));
  const [meta] = rowsOf<{ format: number; own: boolean | null }>(
    await client.query(
      `SELECT format, xmin::text = (txid_current_if_assigned() % 4294967296)::text AS own FROM ${schema}.meta`,
    ),
  );
  const format = meta?.format ?? 0;
  if (format > FORMAT) throw new FenceVersionError(schema, format, FORMAT);
  return made || meta === undefined || meta.own === true ? 'in this transaction' : 'for good';
}
