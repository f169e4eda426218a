import { parseToken } from '../../token.ts';
import { type Bearer, type BearerRules, type Claim, checkResource, checkRules, claimOf } from '../bearer.ts';
import { FenceUsageError, StaleTokenError, TokenJumpError } from '../errors.ts';
import {
  checkSchema,
  checkText,
  databaseError,
  literal,
  type PostgresClient,
  type PostgresPool,
  type PostgresPoolClient,
} from './client.ts';
import { DEFAULT_SCHEMA, JUMP, prepareSchema, STALE } from './schema.ts';

export interface PostgresFenceOptions extends BearerRules {
  /** The schema of the fence's tables, made if it is not there; `pawl_fence` unless set. Lower-case letters, digits and `_`, at most 40. */
  readonly schema?: string;
}

/** A fence whose state stands in the database of the data that it protects, so that check and effect are one transaction. */
export interface PostgresFence {
  /**
   * Checks and honours the token as part of the caller's own transaction, in one round trip. Call it before the first read or write, best at
   * once after `BEGIN`. A refusal fails the transaction: Postgres commits nothing of it, also if nobody looks at the error. Until the transaction
   * ends, nobody with another token comes in; those with the same token do.
   *
   * @param tx the connection on which the transaction is open.
   * @throws StaleTokenError, MissingTokenError, InvalidTokenError; by its rules InvalidSequencerError, TokenJumpError; FenceUsageError outside a
   *   transaction, where check and effect would be two steps; what the database says.
   */
  fenced(tx: PostgresClient, bearer: Bearer, resource: string): Promise<void>;
  /**
   * Begins a transaction with the check, in the round trip of the `BEGIN` that it replaces. To commit it, or to roll it back, is the caller's; where it
   * is refused, it is rolled back already.
   *
   * @param client the connection, not the pool.
   * @throws as {@link fenced}
   */
  begin(client: PostgresClient, bearer: Bearer, resource: string): Promise<void>;
  /**
   * Honours the token, so that older holders are refused from now on: call it before the first read (S8). Outside a transaction it commits by
   * itself; inside one it is undone with it, which is safe, since then nothing was read for good.
   *
   * @param client a pool will do.
   * @throws as {@link fenced}
   */
  raise(client: PostgresClient, resource: string, bearer: Bearer): Promise<void>;
  /**
   * Runs `effect` in a transaction that begins with the check, and commits it; rolls back if either throws. The check costs no round trip: it goes
   * with `BEGIN`.
   *
   * @param effect gets the connection to write on.
   * @returns what `effect` returns.
   * @throws as {@link fenced}; FenceUsageError where `effect` hid the failure of a statement, so that Postgres rolled back.
   */
  transaction<C extends PostgresPoolClient, T>(
    pool: PostgresPool<C>,
    resource: string,
    bearer: Bearer,
    effect: (client: C) => T | Promise<T>,
  ): Promise<T>;
  /**
   * Makes the tables and functions, where the program itself has no right to. Otherwise they are made on first use.
   *
   * @throws FenceVersionError where a newer Pawl made them.
   */
  migrate(client: PostgresClient): Promise<void>;
}

/** Ends at once, and fails outside a transaction: where every statement is one by itself. */
const IN_TRANSACTION = 'SAVEPOINT pawl_fence; RELEASE SAVEPOINT pawl_fence; ';
const BEGIN = 'BEGIN; ';
const NO_TRANSACTION = '25P01';
/** The name does not fit into the index. */
const TOO_LONG = '54000';
/** The schema or the function is not there: whoever made it was rolled back. */
const NOT_THERE = new Set(['3F000', '42883']);

/** The statement that checks a claim. */
interface Call extends Claim {
  readonly resource: string;
  readonly text: string;
}

/**
 * A fence for data in Postgres, 12 or newer. Makes its tables on first use.
 *
 * @throws FenceUsageError where `schema` is no plain name.
 */
export function postgresFence(options: PostgresFenceOptions = {}): PostgresFence {
  const { schema = DEFAULT_SCHEMA } = options;
  checkSchema(schema);
  checkRules(options);
  let ready = false;

  const prepare = async (client: PostgresClient): Promise<void> => {
    ready = (await prepareSchema(client, schema)) === 'for good';
  };

  // Most writes come with the resource and the token of the one before: what was made of them is kept.
  let last: Call | undefined;
  const callOf = (resource: string, bearer: Bearer): Call => {
    const isOther = last === undefined || resource !== last.resource;
    if (isOther) {
      checkResource(resource);
      checkText(resource);
    }
    const { token, floor } = claimOf(resource, bearer, options);
    if (isOther || token !== last?.token || floor !== last.floor) {
      // As texts: a cast, or a default, costs Postgres as much as the rest of the check.
      const given = floor === 0n ? `'${token}'` : `'${token}', '${floor}'`;
      last = { resource, token, floor, text: `CALL ${schema}.honour(${literal(resource)}, ${given})` };
    }
    return last;
  };

  /** @param before statements that go with the check. */
  const honour = async (
    client: PostgresClient,
    resource: string,
    bearer: Bearer,
    before: string,
  ): Promise<void> => {
    const { token, text } = callOf(resource, bearer);
    try {
      await client.query(before + text);
    } catch (error) {
      const { code, detail } = databaseError(error) ?? { code: '', detail: '' };
      if (code === STALE) throw new StaleTokenError(resource, token, parseToken(detail) ?? 0n);
      if (code === JUMP) throw new TokenJumpError(resource, token, parseToken(detail));
      if (code === NO_TRANSACTION) throw outsideTransaction(resource);
      if (code === TOO_LONG) throw tooLong(resource, error);
      if (NOT_THERE.has(code)) ready = false;
      throw error;
    }
  };

  return {
    fenced: async (tx, bearer, resource) => {
      if (!ready) await prepare(tx);
      await honour(tx, resource, bearer, IN_TRANSACTION);
    },
    begin: async (client, bearer, resource) => {
      if ('totalCount' in client) throw onPool(resource);
      // Before the transaction, whose end must not undo the tables.
      if (!ready) await prepare(client);
      try {
        await honour(client, resource, bearer, BEGIN);
      } catch (error) {
        await client.query('ROLLBACK').catch(() => {});
        throw error;
      }
    },
    raise: async (client, resource, bearer) => {
      if (!ready) await prepare(client);
      await honour(client, resource, bearer, '');
    },
    transaction: async (pool, resource, bearer, effect) => {
      const client = await pool.connect();
      let broken = false;
      // A connection that breaks while the effect does something else tells it by an event, which ends a process that does not listen.
      client.on?.('error', toldByNextQuery);
      try {
        if (!ready) await prepare(client);
        await honour(client, resource, bearer, BEGIN);
        const result = await effect(client);
        const answer = await client.query('COMMIT');
        if (wasRolledBack(answer)) throw hiddenFailure(resource);
        return result;
      } catch (error) {
        // Without a transaction this is but a warning; a connection that cannot do even that is of no more use.
        await client.query('ROLLBACK').catch(() => {
          broken = true;
        });
        throw error;
      } finally {
        client.off?.('error', toldByNextQuery);
        client.release(broken);
      }
    },
    migrate: async (client) => {
      await prepareSchema(client, schema);
    },
  };
}

function toldByNextQuery(): void {}

function outsideTransaction(resource: string): FenceUsageError {
  return new FenceUsageError(
    resource,
    `The fence of "${resource}" was checked outside a transaction, where another write can come between check and effect. ` +
      'Begin one first, and give its own connection, not the pool.',
  );
}

function tooLong(resource: string, cause: unknown): FenceUsageError {
  return new FenceUsageError(
    resource,
    'The name of a fenced resource is too long for an index of Postgres; one of at most 2,048 bytes always fits.',
    { cause },
  );
}

function onPool(resource: string): FenceUsageError {
  return new FenceUsageError(
    resource,
    `A transaction on "${resource}" was begun on a pool, whose next statement goes to any connection. Give one that you took by pool.connect().`,
  );
}

/** Postgres answers the COMMIT of a failed transaction with ROLLBACK, and with no error. */
function wasRolledBack(answer: unknown): boolean {
  return (
    typeof answer === 'object' && answer !== null && 'command' in answer && answer.command === 'ROLLBACK'
  );
}

function hiddenFailure(resource: string): FenceUsageError {
  return new FenceUsageError(
    resource,
    `The transaction on "${resource}" was rolled back: a statement in it had failed, and the effect did not pass its error on.`,
  );
}
