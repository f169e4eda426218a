import { StoreUnusableError, StoreVersionError } from '../../errors.ts';
import type { Database } from './database.ts';

/** The format of the tables; a newer Pawl that changes them counts up. */
const FORMAT = 1;

/**
 * Text is kept as the bytes of its UTF-8: Postgres' text holds no NUL, and bytes have an order that no collation changes. A session
 * that has ended has no `expires_at`.
 *
 * A version has to be higher than all that were visible before it. A sequence does not promise that: of two transactions, the one that
 * took the lower number may commit later. So the number stands in a row, and the row's lock puts all commits in order.
 */
function tables(schema: string): string {
  return `
SELECT pg_advisory_xact_lock(hashtext('pawl ' || '${schema}'));
CREATE SCHEMA IF NOT EXISTS ${schema};
CREATE TABLE IF NOT EXISTS ${schema}.meta (id int PRIMARY KEY CHECK (id = 1), format int NOT NULL, version bigint NOT NULL);
CREATE TABLE IF NOT EXISTS ${schema}.entry (key bytea PRIMARY KEY, value bytea NOT NULL, version bigint NOT NULL);
CREATE TABLE IF NOT EXISTS ${schema}.session (id text PRIMARY KEY, ttl_ms bigint NOT NULL, expires_at timestamptz);
CREATE INDEX IF NOT EXISTS session_expiry ON ${schema}.session (expires_at);
INSERT INTO ${schema}.meta VALUES (1, ${FORMAT}, 0) ON CONFLICT DO NOTHING;

-- Takes a list of writes { g: guards [key, version or null], a: sessions, p: puts [key, value], d: deletes, w: wakes [channel,
-- message] }, keys and values in base64. Returns for each ["committed", version], ["conflict", key…] or ["ended", session…].
CREATE OR REPLACE FUNCTION ${schema}.commit(batch jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  write jsonb;
  current_version bigint;
  wrong text[];
  answers jsonb := '[]';
BEGIN
  SELECT version INTO current_version FROM ${schema}.meta WHERE id = 1 FOR UPDATE;
  FOR write IN SELECT * FROM jsonb_array_elements(batch) LOOP
    SELECT array_agg(wanted) INTO wrong FROM jsonb_array_elements_text(write->'a') AS wanted
      WHERE NOT EXISTS (SELECT FROM ${schema}.session s WHERE s.id = wanted AND s.expires_at > clock_timestamp());
    IF wrong IS NOT NULL THEN
      answers := answers || jsonb_build_array(to_jsonb('ended'::text || wrong));
      CONTINUE;
    END IF;
    SELECT array_agg(guard->>0) INTO wrong FROM jsonb_array_elements(write->'g') AS guard
      LEFT JOIN ${schema}.entry e ON e.key = decode(guard->>0, 'base64')
      WHERE e.version IS DISTINCT FROM (guard->>1)::bigint;
    IF wrong IS NOT NULL THEN
      answers := answers || jsonb_build_array(to_jsonb('conflict'::text || wrong));
      CONTINUE;
    END IF;
    IF jsonb_array_length(write->'p') > 0 THEN
      current_version := current_version + 1;
      INSERT INTO ${schema}.entry
        SELECT decode(put->>0, 'base64'), decode(put->>1, 'base64'), current_version FROM jsonb_array_elements(write->'p') AS put
        ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version;
    END IF;
    DELETE FROM ${schema}.entry WHERE key IN (SELECT decode(gone, 'base64') FROM jsonb_array_elements_text(write->'d') AS gone);
    -- A longer message does not fit a notification; whoever waits for it finds out by polling.
    PERFORM pg_notify(wake->>0, current_version || ' ' || (wake->>1)) FROM jsonb_array_elements(write->'w') AS wake
      WHERE octet_length(wake->>1) < 7900;
    answers := answers || jsonb_build_array(jsonb_build_array('committed', current_version::text));
  END LOOP;
  UPDATE ${schema}.meta SET version = current_version WHERE id = 1 AND version <> current_version;
  RETURN answers;
END $$;

-- Ends the sessions of ids, and those whose time is up. Returns all that have ended. Under the lock of the commits, so that none of
-- them relies on a session that ends meanwhile.
CREATE OR REPLACE FUNCTION ${schema}.finish(ids text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM ${schema}.session WHERE expires_at <= clock_timestamp() OR (id = ANY (ids) AND expires_at IS NOT NULL)) THEN
    PERFORM FROM ${schema}.meta WHERE id = 1 FOR UPDATE;
    UPDATE ${schema}.session SET expires_at = NULL
      WHERE expires_at <= clock_timestamp() OR (id = ANY (ids) AND expires_at IS NOT NULL);
  END IF;
  RETURN QUERY SELECT id FROM ${schema}.session WHERE expires_at IS NULL;
END $$;
`;
}

/**
 * Whether each statement sees what was committed before it. Under the stricter levels a transaction that waited for another still sees what
 * was before that one: a guard would hold of a record that is gone, and a session be alive that has ended.
 */
export const SEES_THE_LATEST = `current_setting('transaction_isolation') IN ('read committed', 'read uncommitted')`;

export function outdatedSnapshots(schema: string): StoreUnusableError {
  return new StoreUnusableError(
    `The schema "${schema}"`,
    'its connections begin with a stricter isolation than read committed, which would show them what is outdated; set default_transaction_isolation to "read committed" for its role or its pool',
  );
}

/**
 * Makes the tables and functions if they are not there. Several engines may do so at once.
 *
 * @throws StoreVersionError where a newer Pawl made them, StoreUnusableError where connections see what is outdated.
 */
export async function prepareSchema(database: Database, schema: string): Promise<void> {
  const [found] = await database.query<{ meta: string | null }>('SELECT to_regclass($1) AS meta', [
    `${schema}.meta`,
  ]);
  if (found?.meta == null) await database.query(tables(schema), undefined);
  const [meta] = await database.query<{ format: number; latest: boolean }>(
    `SELECT format, ${SEES_THE_LATEST} AS latest FROM ${schema}.meta`,
    [],
  );
  const format = meta?.format ?? 0;
  if (format > FORMAT) throw new StoreVersionError(`The schema "${schema}"`, format, FORMAT);
  if (meta?.latest === false) throw outdatedSnapshots(schema);
}
