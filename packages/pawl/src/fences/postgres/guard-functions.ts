/**
 * The server's side of the guards. They run with the rights of whoever installed them, since they are called for everybody who writes to a
 * guarded table; so they name every schema, and read no search path.
 *
 * `lacks` is asked before each write. It looks at the token's row again and locks it, so that it holds also for a program that made the setting
 * without the fence. `guard` runs only where something is lacking.
 *
 * `first_guard` is asked before a guard is installed: from then on whoever honours is remembered. The first time it waits for every transaction
 * that has honoured without being remembered, and whoever comes meanwhile goes after it: so none of them writes to a table that is guarded next.
 *
 * An audit must not make anybody wait: it counts in a row that nobody else has locked, and makes another where there is none, so there are as
 * many rows for one way of writing as transactions that wrote so at once. It records a statement of the client once, however many rows it
 * writes: what was recorded of the present one stands in a setting. Above READ COMMITTED even that could fail the writer's transaction;
 * there it only adds rows. Whatever fails in it is but a warning.
 */
export function guardFunctions(schema: string): string {
  return `
CREATE OR REPLACE FUNCTION ${schema}.first_guard() RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM pg_attrdef d WHERE d.adrelid = '${schema}.token'::regclass AND pg_get_expr(d.adbin, d.adrelid) = 'false') THEN
    ALTER TABLE ${schema}.token ALTER COLUMN guarded SET DEFAULT true;
    UPDATE ${schema}.token SET guarded = true;
  END IF;
END $$;

CREATE OR REPLACE FUNCTION ${schema}.lacks(of_resource text) RETURNS boolean LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  carried text := current_setting('${schema}.tokens', true);
  own text;
BEGIN
  IF coalesce(carried, '') = '' THEN RETURN true; END IF;
  own := txid_current() || ' ';
  IF of_resource IS NOT NULL THEN
    PERFORM FROM ${schema}.token t WHERE t.resource = of_resource
      AND strpos(carried, concat(chr(30), own, t.token, ' ', t.resource, chr(30))) > 0 FOR SHARE OF t;
  ELSE
    PERFORM FROM ${schema}.token t WHERE t.resource IN (SELECT ${schema}.carried_resources(carried))
      AND strpos(carried, concat(chr(30), own, t.token, ' ', t.resource, chr(30))) > 0 FOR SHARE OF t;
  END IF;
  RETURN NOT FOUND;
END $$;

-- The resources in such a list that were honoured by this transaction.
CREATE OR REPLACE FUNCTION ${schema}.carried_resources(carried text) RETURNS SETOF text LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
  SELECT regexp_replace(entry, '^[0-9]+ [0-9]+ ', '') FROM unnest(string_to_array(carried, chr(30))) AS entry
    WHERE starts_with(entry, txid_current() || ' ');
$$;

-- The resource of a row: a pattern with the row's values in it.
CREATE OR REPLACE FUNCTION ${schema}.resource_of(pattern text, written jsonb) RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name text;
  result text := pattern;
BEGIN
  FOR name IN SELECT (regexp_matches(pattern, '\\{([^{}]+)\\}', 'g'))[1] LOOP
    result := replace(result, '{' || name || '}', coalesce(written->>name, ''));
  END LOOP;
  RETURN result;
END $$;

-- A statement without its values, so that one place in a program gives one text.
CREATE OR REPLACE FUNCTION ${schema}.outline(query text) RETURNS text LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  result text := left(query, 4000);
BEGIN
  result := regexp_replace(result, '''([^'']|'''')*(''|$)', '?', 'g');
  result := regexp_replace(result, '([^[:alnum:]_$.])[0-9]+(\\.[0-9]+)?', '\\1?', 'g');
  result := regexp_replace(result, '\\s+', ' ', 'g');
  result := regexp_replace(result, '(\\?|\\$[0-9]+)( ?, ?(\\?|\\$[0-9]+))+', '\\1, …', 'g');
  result := regexp_replace(result, '(\\([^()]*, …\\))( ?, ?\\([^()]*, …\\))+', '\\1, …', 'g');
  result := trim(result);
  RETURN CASE WHEN length(result) > 300 THEN left(result, 299) || '…' ELSE result END;
END $$;

-- Arguments: the mode, and the resource or its pattern, empty for any.
CREATE OR REPLACE FUNCTION ${schema}.guard() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  relation text := format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
  needed text := TG_ARGV[1];
  carried text[];
  reason text;
  statement text;
  recorded text;
  outlined text;
  way text;
BEGIN
  IF TG_LEVEL = 'ROW' THEN
    IF TG_OP <> 'INSERT' THEN needed := ${schema}.resource_of(TG_ARGV[1], to_jsonb(OLD)); END IF;
    IF TG_OP = 'INSERT' OR (TG_OP = 'UPDATE' AND NOT ${schema}.lacks(needed)) THEN
      needed := ${schema}.resource_of(TG_ARGV[1], to_jsonb(NEW));
    END IF;
  END IF;
  carried := ARRAY(SELECT ${schema}.carried_resources(current_setting('${schema}.tokens', true)));
  reason := CASE WHEN cardinality(carried) = 0 THEN 'no token'
    WHEN needed <> '' AND needed <> ALL (carried) THEN 'token of another resource' ELSE 'stale token' END;
  IF TG_ARGV[0] = 'enforce' THEN
    RAISE EXCEPTION USING ERRCODE = CASE reason WHEN 'stale token' THEN 'PW001' ELSE 'PW002' END,
      SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
      MESSAGE = format('%s is fenced and refused this %s: its transaction carries %s%s.', relation, TG_OP,
          CASE reason WHEN 'no token' THEN 'no token' WHEN 'stale token' THEN 'a stale token' ELSE 'only the token of another resource' END,
          CASE WHEN needed = '' THEN '' ELSE format(' where it needs that of "%s"', needed) END)
        || CASE WHEN reason = 'stale token' THEN ' Stop, and acquire the lock again.'
             WHEN TG_OP = 'TRUNCATE' AND needed LIKE '%{%}%' THEN ' No token is that of all rows: delete them one by one, or remove the guard first.'
             ELSE format(' To fix it, acquire the lock and call fenced(tx, lease, %L) of pawl/fences/postgres in the transaction, before the write',
               CASE needed WHEN '' THEN 'RESOURCE' ELSE needed END)
               || format(' (from other languages: CALL ${schema}.honour(%L, TOKEN)).', CASE needed WHEN '' THEN 'RESOURCE' ELSE needed END) END,
      HINT = format('To let such writes pass and only record them: pawl fence install --table %s --audit', relation);
  END IF;
  statement := concat(txid_current(), ' ', statement_timestamp());
  recorded := current_setting('${schema}.recorded', true);
  IF recorded IS NULL OR NOT starts_with(recorded, statement) THEN recorded := statement; END IF;
  way := concat(chr(30), relation, ' ', TG_OP, ' ', reason, chr(30));
  IF strpos(recorded, way) > 0 THEN
    IF TG_LEVEL = 'STATEMENT' THEN RETURN NULL; END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
  END IF;
  PERFORM set_config('${schema}.recorded', recorded || way, true);
  BEGIN
    outlined := ${schema}.outline(current_query());
    way := md5(concat_ws(chr(1), relation, TG_OP, reason, current_setting('application_name'), session_user, outlined));
    IF current_setting('transaction_isolation') = 'read committed' THEN
      UPDATE ${schema}.unfenced u SET count = u.count + 1, last_at = clock_timestamp()
        WHERE u.id = (SELECT o.id FROM ${schema}.unfenced o WHERE o.path = way LIMIT 1 FOR UPDATE SKIP LOCKED);
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' OR NOT FOUND THEN
      INSERT INTO ${schema}.unfenced (path, relation, operation, reason, application, role, query, count, first_at, last_at) VALUES
        (way, relation, TG_OP, reason, current_setting('application_name'), session_user, outlined, 1, clock_timestamp(), clock_timestamp());
    END IF;
  EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'pawl could not record an unfenced write to %: %', relation, SQLERRM;
  END;
  IF TG_LEVEL = 'STATEMENT' THEN RETURN NULL; END IF;
  RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
`;
}
