type Values = Readonly<Record<string, unknown>>;

/** The parameters of a write. The driver knows more, and gets them as they are; the table is the fence's. */
export interface DynamodbInput {
  readonly ConditionExpression?: string | undefined;
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>> | undefined;
  readonly ExpressionAttributeValues?: Values | undefined;
  readonly [parameter: string]: unknown;
}

export interface DynamodbPut extends DynamodbInput {
  readonly Item: Values;
}

export interface DynamodbUpdate extends DynamodbInput {
  readonly Key: Values;
  readonly UpdateExpression?: string | undefined;
}

/** What a write answers: with `ReturnValues`, the attributes. */
export interface DynamodbWritten {
  readonly Attributes?: Values | undefined;
}

interface DynamodbGet {
  readonly TableName: string;
  readonly Key: Values;
  readonly ConsistentRead: boolean;
  readonly ProjectionExpression: string;
  readonly ExpressionAttributeNames: Readonly<Record<string, string>>;
}

interface DynamodbFound {
  readonly Item?: Values | undefined;
}

/** Whatever it takes: each driver has values of its own. */
type Call<Answer> = (input: never) => Promise<Answer>;

/**
 * What a fence calls on `DynamoDB` of `@aws-sdk/client-dynamodb`. Of a `DynamoDBClient` it is one line each, as in
 * `updateItem: (input) => client.send(new UpdateItemCommand(input))`.
 */
export interface DynamodbLike {
  readonly putItem: Call<DynamodbWritten>;
  readonly updateItem: Call<DynamodbWritten>;
  readonly getItem: Call<DynamodbFound>;
}

/** What a fence calls on `DynamoDBDocument` of `@aws-sdk/lib-dynamodb`, whose values are those of JavaScript. */
export interface DynamodbDocumentLike {
  readonly put: Call<DynamodbWritten>;
  readonly update: Call<DynamodbWritten>;
  readonly get: Call<DynamodbFound>;
}

/** One driver like the other. */
export interface Dynamodb {
  put(input: DynamodbPut): Promise<DynamodbWritten>;
  update(input: DynamodbUpdate): Promise<DynamodbWritten>;
  get(input: DynamodbGet): Promise<DynamodbFound>;
  /** A text as a value of the driver. */
  text(value: string): unknown;
  /** The text that is such a value, or `undefined` where it is another. */
  textOf(value: unknown): string | undefined;
}

/** @returns `undefined` where it is neither. */
export function driverOf(client: DynamodbLike | DynamodbDocumentLike): Dynamodb | undefined {
  if (typeof client !== 'object' || client === null) return undefined;
  if ('updateItem' in client) {
    return {
      put: (input) => client.putItem(input as never),
      update: (input) => client.updateItem(input as never),
      get: (input) => client.getItem(input as never),
      text: (value) => ({ S: value }),
      textOf: (value) => asText((value as { S?: unknown }).S),
    };
  }
  if ('update' in client && 'put' in client) {
    return {
      put: (input) => client.put(input as never),
      update: (input) => client.update(input as never),
      get: (input) => client.get(input as never),
      text: (value) => value,
      textOf: asText,
    };
  }
  return undefined;
}

function asText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
