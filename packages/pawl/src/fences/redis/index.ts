import { parseToken, type Token } from '../../token.ts';
import { type Bearer, type BearerRules, checkResource, checkRules, claimOf } from '../bearer.ts';
import { FencedCommandError, FenceUsageError, StaleTokenError, TokenJumpError } from '../errors.ts';
import { type RedisArgument, type RedisClient, sender } from './client.ts';
import { FENCED, MOST_PARTS } from './script.ts';

export type { IoRedisClient, NodeRedisClient, RedisArgument, RedisClient } from './client.ts';

/** A command of Redis and its arguments, as in `['HSET', 'account:1', 'balance', 150]`. */
export type RedisCommand = readonly [command: string, ...args: RedisArgument[]];

export interface RedisFenceOptions extends BearerRules {
  /** What the keys of the fence begin with; `pawl-fence` unless set. */
  readonly prefix?: string | undefined;
}

/** A fence whose state stands in the same Redis as the data, so that check and effect are one script. */
export interface RedisFence {
  /**
   * Honours the token, so that older holders are refused from now on: call it before the first read (S8).
   *
   * @throws StaleTokenError, MissingTokenError, InvalidTokenError; by its rules InvalidSequencerError, TokenJumpError; the driver's
   *   errors as they are, after which it may have been honoured or not.
   */
  raise(resource: string, bearer: Bearer): Promise<void>;
  /**
   * Checks and honours the token and runs the commands, in one step that nothing comes between.
   *
   * If a command fails, those before it stay in effect (Redis undoes nothing) and those after it are not run.
   *
   * @returns the answers, in the order of the commands.
   * @throws as {@link raise}; FencedCommandError where a command failed; FenceUsageError where the commands are none.
   */
  commands(resource: string, bearer: Bearer, commands: readonly RedisCommand[]): Promise<unknown[]>;
  /** The key that keeps the highest token of the resource. */
  keyOf(resource: string): string;
  /** The highest token honoured so far. */
  highest(resource: string): Promise<Token | undefined>;
}

/**
 * A fence for data in Redis.
 *
 * In a cluster, check and effect can be one step only on one node: all keys of the commands must be in the slot of the fence's
 * key. That is the slot of a key with the name of the resource; where the name has a hash tag, that of the tag.
 *
 * The highest tokens are as durable as the data beside them. Give Redis no policy that evicts keys without an expiry: a fence whose
 * key was evicted accepts any token.
 *
 * @param client ioredis or node-redis, connected; also of a cluster (ioredis).
 * @throws FenceUsageError
 */
export function redisFence(client: RedisClient, options: RedisFenceOptions = {}): RedisFence {
  const { prefix = 'pawl-fence', ...rules } = options;
  const send = sender(client);
  if (send === undefined) {
    throw new FenceUsageError('redis', 'A Redis fence needs a client of ioredis or of node-redis.');
  }
  if (typeof prefix !== 'string' || prefix === '' || /[{}]/.test(prefix)) {
    throw new FenceUsageError('redis', 'The prefix of a fence must be a text without braces.');
  }
  checkRules(rules);

  const commands = async (
    resource: string,
    bearer: Bearer,
    batch: readonly RedisCommand[],
  ): Promise<unknown[]> => {
    checkResource(resource);
    const { token, floor } = claimOf(resource, bearer, rules);
    const args: RedisArgument[] = [token.toString(), floor.toString()];
    for (const command of checkBatch(resource, batch)) args.push(command.length, ...command);
    const answer = await FENCED.run(send, keyOf(resource), args);
    const [outcome, ...rest] = answer as [unknown, ...unknown[]];
    switch (String(outcome)) {
      case 'done':
        return rest;
      case 'stale':
        throw stale(resource, keyOf(resource), token, String(rest[0]));
      case 'jump':
        throw new TokenJumpError(resource, token, parseToken(String(rest[0])));
      default: {
        const index = Number(rest[0]);
        throw new FencedCommandError(resource, index, String(batch[index]?.[0]), String(rest[1]));
      }
    }
  };

  const raise = async (resource: string, bearer: Bearer): Promise<void> => {
    await commands(resource, bearer, []);
  };

  // Two kinds of names, so that "a" and "{a}" do not share a key.
  const keyOf = (resource: string): string =>
    /\{[^}]+\}/.test(resource) ? `${prefix}-of:${resource}` : `${prefix}:{${resource}}`;

  const highest = async (resource: string): Promise<Token | undefined> => {
    checkResource(resource);
    const answer = await send('GET', [keyOf(resource)]);
    return answer === null || answer === undefined ? undefined : parseToken(String(answer));
  };

  return { raise, commands, keyOf, highest };
}

function stale(resource: string, key: string, token: Token, found: string): Error {
  const highest = parseToken(found);
  if (highest !== undefined) return new StaleTokenError(resource, token, highest);
  return new FenceUsageError(
    resource,
    `What stands in the key "${key}" is no token; no fence wrote that. Correct or remove it, or take another prefix.`,
  );
}

function checkBatch(resource: string, batch: readonly RedisCommand[]): readonly RedisCommand[] {
  const isArgument = (value: unknown) =>
    typeof value === 'string' || typeof value === 'number' || value instanceof Uint8Array;
  const fits = (command: unknown) =>
    Array.isArray(command) &&
    command.length > 0 &&
    command.length <= MOST_PARTS &&
    typeof command[0] === 'string' &&
    command.every(isArgument);
  if (Array.isArray(batch) && batch.every(fits)) return batch;
  throw new FenceUsageError(
    resource,
    `Commands for Redis are lists of at most ${MOST_PARTS} texts, numbers or bytes, each with the name of the command first.`,
  );
}
