import { parseToken, type Token } from '../../token.ts';
import { type Bearer, type BearerRules, checkResource, checkRules, claimOf, refusal } from '../bearer.ts';
import { FenceUsageError, StaleTokenError } from '../errors.ts';
import {
  errorNumber,
  isAutocommit,
  isInTransaction,
  type MysqlClient,
  type MysqlHeader,
  type MysqlPool,
  type MysqlPoolConnection,
} from './client.ts';

export interface MysqlFenceOptions extends BearerRules {
  /** The table that keeps the highest token of each resource; `pawl_fence` unless set. Letters, digits and `_`. */
  readonly table?: string;
}

/** A fence whose state stands in the database of the data that it protects (InnoDB), so that check and effect are one transaction. */
export interface MysqlFence {
  /**
   * Checks and honours the token as part of the caller's own transaction, in one round trip. Call it before the first read or write: a
   * snapshot that was taken before may be older than the token. If it throws, roll back. Until the transaction ends nobody else comes in.
   *
   * @param tx the connection on which the transaction is open.
   * @throws StaleTokenError, MissingTokenError, InvalidTokenError; by its rules InvalidSequencerError, TokenJumpError; FenceUsageError outside a
   *   transaction, where check and effect would be two steps, and where the table is not there yet; what the database says.
   */
  fenced(tx: MysqlClient, bearer: Bearer, resource: string): Promise<void>;
  /**
   * Honours the token, so that older holders are refused from now on: call it before the first read (S8). Outside a transaction it commits by
   * itself; inside one it is undone with it, which is safe, since then nothing was read for good.
   *
   * @param client a pool will do.
   * @throws as {@link fenced}
   */
  raise(client: MysqlClient, resource: string, bearer: Bearer): Promise<void>;
  /**
   * Runs `effect` in a transaction that begins with the check, and commits it; rolls back if either throws. Makes the table if it is not there.
   *
   * @param effect gets the connection to write on. What it writes after the transaction has ended, by a deadlock or a statement that commits, is rolled back.
   * @returns what `effect` returns.
   * @throws as {@link fenced}; FenceUsageError where the transaction ended before `effect` did, and `effect` did not pass that on.
   */
  transaction<C extends MysqlPoolConnection, T>(
    pool: MysqlPool<C>,
    resource: string,
    bearer: Bearer,
    effect: (connection: C) => T | Promise<T>,
  ): Promise<T>;
  /** Makes the table if it is not there. Not inside a transaction, which it would commit: so it is with MySQL. */
  migrate(client: MysqlClient): Promise<void>;
}

const NO_SUCH_TABLE = 1146;
/** InnoDB rolled the transaction back for another's sake. */
const DEADLOCK = 1213;
const NO_SUCH_SAVEPOINT = 1305;
/*
 * InnoDB ends a whole transaction for another's sake by the error of one statement. An effect that goes on after that would write past the fence, each
 * statement by itself. So meanwhile none is one by itself: they make another transaction, which is not committed, since it lacks a savepoint of the first.
 */
const COMMIT_AND_AUTOCOMMIT = 'SET autocommit = 1';
const REPETITIONS = 5;
const LONGEST_NAME = 2048;

/**
 * A fence for data in MySQL or MariaDB.
 *
 * @throws FenceUsageError where `table` is no plain name.
 */
export function mysqlFence(options: MysqlFenceOptions = {}): MysqlFence {
  const { table = 'pawl_fence' } = options;
  if (typeof table !== 'string' || !/^[A-Za-z_]\w{0,62}$/.test(table)) {
    throw new FenceUsageError(
      String(table),
      'The table of a fence must be a name of letters, digits and "_".',
    );
  }
  checkRules(options);
  // Names as bytes: texts of MySQL are equal that differ in trailing blanks.
  const create = `CREATE TABLE IF NOT EXISTS ${table} (resource VARBINARY(${LONGEST_NAME}) PRIMARY KEY, token BIGINT NOT NULL) ENGINE = InnoDB`;
  // There is no condition for the update of a duplicate, but what is refused can leave a mark in the answer. The row is locked either way.
  const honourSql = `INSERT INTO ${table} (resource, token)
    SELECT ?, ? FROM (SELECT 1) one WHERE ? = 0 OR EXISTS (SELECT 1 FROM ${table} known WHERE known.resource = ?)
    ON DUPLICATE KEY UPDATE token = IF(VALUES(token) >= ${table}.token AND ${table}.token >= ?, VALUES(token), ${table}.token + LAST_INSERT_ID(1) - 1)`;
  const plainSql = `INSERT INTO ${table} (resource, token) VALUES (?, ?)
    ON DUPLICATE KEY UPDATE token = IF(VALUES(token) >= token, VALUES(token), token + LAST_INSERT_ID(1) - 1)`;

  const migrate = async (client: MysqlClient): Promise<void> => {
    await client.query(create);
  };

  const highest = async (client: MysqlClient, name: Buffer): Promise<Token | undefined> => {
    const sql = `SELECT CAST(token AS CHAR) AS token FROM ${table} WHERE resource = ? FOR UPDATE`;
    const [rows] = await client.query(sql, [name]);
    return parseToken((rows as { token: string }[])[0]?.token);
  };

  const honour = async (client: MysqlClient, resource: string, bearer: Bearer): Promise<MysqlHeader> => {
    const name = nameOf(resource);
    const claim = claimOf(resource, bearer, options);
    const [token, floor] = [claim.token.toString(), claim.floor.toString()];
    const [answer] =
      claim.floor === 0n
        ? await query(client, resource, table, plainSql, [name, token])
        : await query(client, resource, table, honourSql, [name, token, floor, name, floor]);
    const header = answer as MysqlHeader & { affectedRows: number };
    if (Number(header.insertId) === 0 && header.affectedRows > 0) return header;
    const honoured = await highest(client, name);
    // A connection without the flag FOUND_ROWS does not count the row that has the token already.
    if (honoured === claim.token) return header;
    throw refusal(resource, claim, honoured) ?? new StaleTokenError(resource, claim.token, honoured ?? 0n);
  };

  return {
    migrate,
    raise: async (client, resource, bearer) => {
      await honour(client, resource, bearer);
    },
    fenced: async (tx, bearer, resource) => {
      if (isInTransaction(await honour(tx, resource, bearer))) return;
      throw new FenceUsageError(
        resource,
        `The fence of "${resource}" was checked outside a transaction, where another write can come between check and effect. ` +
          'Begin one first, and give its own connection, not the pool.',
      );
    },
    transaction: async (pool, resource, bearer, effect) => {
      const connection = await pool.getConnection();
      let broken = false;
      let commit = 'COMMIT';
      try {
        const header = await begin(connection, () => honour(connection, resource, bearer), migrate);
        if (isAutocommit(header)) {
          await connection.query('SET autocommit = 0');
          commit = COMMIT_AND_AUTOCOMMIT;
        }
        await connection.query('SAVEPOINT pawl_fence');
        const result = await effect(connection);
        await connection.query('RELEASE SAVEPOINT pawl_fence').catch((cause) => {
          throw errorNumber(cause) === NO_SUCH_SAVEPOINT ? hiddenFailure(resource, cause) : cause;
        });
        await connection.query(commit);
        return result;
      } catch (error) {
        try {
          await connection.query('ROLLBACK');
          if (commit === COMMIT_AND_AUTOCOMMIT) await connection.query(commit);
        } catch {
          broken = true;
        }
        throw error;
      } finally {
        if (broken) connection.destroy();
        else connection.release();
      }
    },
  };
}

/**
 * Begins a transaction with the check. Makes the table in between where it is not there, and repeats what InnoDB rolled back, as it may where
 * several insert the first token of a resource: nothing else was done yet.
 */
async function begin<C extends MysqlClient>(
  connection: C,
  honour: () => Promise<MysqlHeader>,
  migrate: (client: C) => Promise<void>,
): Promise<MysqlHeader> {
  for (let left = REPETITIONS; ; left -= 1) {
    await connection.query('START TRANSACTION');
    try {
      return await honour();
    } catch (error) {
      const missing = errorNumber(error instanceof Error ? error.cause : undefined) === NO_SUCH_TABLE;
      if (left === 0 || !(missing || errorNumber(error) === DEADLOCK)) throw error;
      await connection.query('ROLLBACK');
      if (missing) await migrate(connection);
    }
  }
}

async function query(
  client: MysqlClient,
  resource: string,
  table: string,
  sql: string,
  values: unknown[],
): Promise<[unknown, ...unknown[]]> {
  try {
    return await client.query(sql, values);
  } catch (cause) {
    if (errorNumber(cause) !== NO_SUCH_TABLE) throw cause;
    throw new FenceUsageError(
      resource,
      `The table ${table} of the fences is not there. Call migrate once, outside a transaction, since MySQL would commit it.`,
      { cause },
    );
  }
}

function hiddenFailure(resource: string, cause: unknown): FenceUsageError {
  return new FenceUsageError(
    resource,
    `The transaction on "${resource}" ended before the effect did: the database rolled it back, as for a deadlock, or a statement committed it. ` +
      'Let the effect pass on the errors of its statements, and repeat the whole transaction instead.',
    { cause },
  );
}

function nameOf(resource: string): Buffer {
  checkResource(resource);
  const name = Buffer.from(resource, 'utf8');
  if (name.length <= LONGEST_NAME) return name;
  throw new FenceUsageError(
    resource,
    `The name of a fenced resource has at most ${LONGEST_NAME} bytes here.`,
  );
}
