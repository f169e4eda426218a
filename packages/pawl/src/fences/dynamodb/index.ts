import { parseToken, type Token } from '../../token.ts';
import { failureOf } from '../aws-failure.ts';
import {
  type Bearer,
  type BearerRules,
  type Claim,
  checkResource,
  checkRules,
  claimOf,
  refusal,
} from '../bearer.ts';
import { FenceUsageError, StaleTokenError, TokenJumpError, WriteUnknownError } from '../errors.ts';
import {
  type DynamodbDocumentLike,
  type DynamodbInput,
  type DynamodbLike,
  type DynamodbPut,
  type DynamodbUpdate,
  type DynamodbWritten,
  driverOf,
} from './client.ts';
import { ATTRIBUTE, conditionOf, FLOOR, settingToken, TOKEN, tokenText } from './expression.ts';

export { WriteUnknownError } from '../errors.ts';
export type {
  DynamodbDocumentLike,
  DynamodbLike,
  DynamodbPut,
  DynamodbUpdate,
  DynamodbWritten,
} from './client.ts';

type Item = Readonly<Record<string, unknown>>;

export interface DynamodbFenceOptions extends BearerRules {
  readonly table: string;
  /** The names of the attributes that are the table's key: one or two. */
  readonly key: readonly string[];
  /** The attribute that keeps the highest token, a text of 19 digits; `pawl_token` unless set. */
  readonly attribute?: string | undefined;
}

/** A fence around each item of a table. Its state is an attribute of the item itself, so that check and effect are one conditional write. */
export interface DynamodbFence {
  /**
   * Honours the token, so that older holders are refused from now on: call it before the first read (S8). Where there is no item yet, it makes one of
   * nothing but the key and the token.
   *
   * @throws StaleTokenError, MissingTokenError, InvalidTokenError; by its rules InvalidSequencerError, TokenJumpError; WriteUnknownError where the driver
   *   repeated the write and others came between; the driver's errors as they are, after which it may have been honoured or not.
   */
  raise(resource: string, bearer: Bearer, key: Item): Promise<void>;
  /**
   * Changes the item, by `UpdateItem`. A condition of the input must hold too; if it does not, the driver's `ConditionalCheckFailedException`
   * comes through. Without `UpdateExpression` only the token is written.
   *
   * @throws as {@link raise}
   */
  update(resource: string, bearer: Bearer, input: DynamodbUpdate): Promise<DynamodbWritten>;
  /**
   * Puts the item in place of the one there is, by `PutItem`. To remove one, put its key alone: a `DeleteItem` would remove its fence too.
   *
   * @throws as {@link update}
   */
  put(resource: string, bearer: Bearer, input: DynamodbPut): Promise<DynamodbWritten>;
  /** The highest token that the item has honoured. */
  highest(key: Item): Promise<Token | undefined>;
}

/**
 * A fence for the items of a table in DynamoDB.
 *
 * @param client `DynamoDB` of `@aws-sdk/client-dynamodb`, `DynamoDBDocument` of `@aws-sdk/lib-dynamodb`, or three functions of a `DynamoDBClient`.
 * @throws FenceUsageError
 */
export function dynamodbFence(
  client: DynamodbLike | DynamodbDocumentLike,
  options: DynamodbFenceOptions,
): DynamodbFence {
  const { table, key: keyNames, attribute = 'pawl_token', ...rules } = options;
  const driver = driverOf(client);
  if (driver === undefined) {
    throw new FenceUsageError(
      'dynamodb',
      'A fence in DynamoDB needs a DynamoDB of @aws-sdk/client-dynamodb or a DynamoDBDocument of @aws-sdk/lib-dynamodb.',
    );
  }
  if (typeof table !== 'string' || table === '' || typeof attribute !== 'string' || attribute === '') {
    throw new FenceUsageError(
      'dynamodb',
      'A fence in DynamoDB needs the name of a table, and of an attribute.',
    );
  }
  if (
    !Array.isArray(keyNames) ||
    keyNames.length < 1 ||
    keyNames.length > 2 ||
    keyNames.includes(attribute)
  ) {
    throw new FenceUsageError(
      'dynamodb',
      'The key of a table is one or two names of attributes, and not that of the token.',
    );
  }
  checkRules(rules);

  const keyIn = (resource: string, item: Item | undefined): Item => {
    const missing = keyNames.find((name) => item?.[name] === undefined);
    if (item === undefined || missing !== undefined) {
      throw new FenceUsageError(
        resource,
        `The key of "${resource}" has no attribute "${missing ?? keyNames}".`,
      );
    }
    return Object.fromEntries(keyNames.map((name) => [name, item[name]]));
  };

  const highest = async (key: Item): Promise<Token | undefined> => {
    const { Item: item } = await driver.get({
      TableName: table,
      Key: key,
      ConsistentRead: true,
      ProjectionExpression: ATTRIBUTE,
      ExpressionAttributeNames: { [ATTRIBUTE]: attribute },
    });
    const value = item?.[attribute];
    if (value === undefined) return undefined;
    const token = parseToken(driver.textOf(value)?.replace(/^0+/, ''));
    if (token !== undefined) return token;
    throw new FenceUsageError(
      table,
      `The attribute "${attribute}" of ${JSON.stringify(key)} in ${table} is no token; no fence wrote that. Correct or remove it, or take another attribute.`,
    );
  };

  /** The parameters of a write, with the fence in its condition. */
  const fenced = (claim: Claim, input: DynamodbInput): DynamodbInput => ({
    ...input,
    TableName: table,
    ConditionExpression: conditionOf(claim, input.ConditionExpression),
    ExpressionAttributeNames: { ...input.ExpressionAttributeNames, [ATTRIBUTE]: attribute },
    ExpressionAttributeValues: {
      ...input.ExpressionAttributeValues,
      [TOKEN]: driver.text(tokenText(claim.token)),
      ...(claim.floor > 0n ? { [FLOOR]: driver.text(tokenText(claim.floor)) } : {}),
    },
  });

  /** Tells why a condition failed: what the attribute holds only goes up, so a look at it afterwards does. */
  const settle = async <T>(
    resource: string,
    claim: Claim,
    key: Item,
    write: DynamodbInput,
    done: Promise<T>,
  ): Promise<T> => {
    try {
      return await done;
    } catch (error) {
      const { name, attempts } = failureOf(error);
      if (name !== 'ConditionalCheckFailedException') throw error;
      const honoured = await highest(key);
      const refused = refusal(resource, claim, honoured);
      // The driver repeats by itself where an answer is lost: the first try may have been written before the other holder came.
      if (refused instanceof StaleTokenError && attempts > 1) throw new WriteUnknownError(resource, error);
      if (refused !== undefined) throw refused;
      // Without a condition of the caller's it was the floor; another has raised it since.
      if (write.ConditionExpression === undefined && claim.floor > 0n) {
        throw new TokenJumpError(resource, claim.token, honoured);
      }
      throw error;
    }
  };

  const update: DynamodbFence['update'] = async (resource, bearer, input) => {
    checkResource(resource);
    const claim = claimOf(resource, bearer, rules);
    const { Key, UpdateExpression } = input;
    const key = keyIn(resource, Key);
    const request = { ...fenced(claim, input), Key: key, UpdateExpression: settingToken(UpdateExpression) };
    return settle(resource, claim, key, input, driver.update(request));
  };

  const put: DynamodbFence['put'] = async (resource, bearer, input) => {
    checkResource(resource);
    const claim = claimOf(resource, bearer, rules);
    const { Item: item } = input;
    const key = keyIn(resource, item);
    const written = { ...item, [attribute]: driver.text(tokenText(claim.token)) };
    return settle(resource, claim, key, input, driver.put({ ...fenced(claim, input), Item: written }));
  };

  return {
    raise: async (resource, bearer, key) => {
      await update(resource, bearer, { Key: key });
    },
    update,
    put,
    highest: async (key) => highest(keyIn(table, key)),
  };
}
