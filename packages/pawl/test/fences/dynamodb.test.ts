import {
  type DynamoDB,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { DynamoDBDocument } from '@aws-sdk/lib-dynamodb';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DynamodbUpdate, dynamodbFence } from '../../src/fences/dynamodb/index.ts';
import { runDocumented } from '../engines/server-tools.ts';
import { createTable, DynamodbServer, dynamodbClient } from './dynamodb-server.ts';
import { fencedValue } from './fenced-value.ts';
import { tellPauses } from './pauses.ts';

const table = 'account';
const options = { table, key: ['id'] };
const stale = expect.objectContaining({ code: 'PAWL_STALE_TOKEN' });
const usage = expect.objectContaining({ code: 'PAWL_FENCE_USAGE' });

/* The server is dynalite, which evaluates conditions as DynamoDB does; DynamoDB itself cannot be had for tests. */
describe('the fence in DynamoDB, by dynalite', () => {
  const server = new DynamodbServer();
  let db: DynamoDB;
  let document: DynamoDBDocument;
  let made = 0;
  const newId = () => {
    made += 1;
    return `item-${made}`;
  };
  const itemOf = async (id: string) =>
    (await document.get({ TableName: table, Key: { id }, ConsistentRead: true })).Item;

  beforeAll(async () => {
    await server.start();
    db = dynamodbClient(server.endpoint);
    document = DynamoDBDocument.from(db);
    for (const name of [table, 'paused']) await createTable(db, name);
  });
  afterAll(async () => {
    db.destroy();
    await server.stop();
  });

  describe('by the client of DynamoDB, an update', () => {
    fencedValue(async () => {
      const id = newId();
      const fence = dynamodbFence(db, options);
      return {
        raise: (bearer) => fence.raise(id, bearer, { id: { S: id } }),
        write: async (bearer, value) => {
          await fence.update(id, bearer, {
            Key: { id: { S: id } },
            UpdateExpression: 'SET #v = :v REMOVE gone',
            ExpressionAttributeNames: { '#v': 'value' },
            ExpressionAttributeValues: { ':v': { N: `${value}` } },
          });
        },
        read: async () => (await itemOf(id))?.value ?? 0,
      };
    });
  });

  describe('by the document client, a put', () => {
    fencedValue(async () => {
      const id = newId();
      const fence = dynamodbFence(document, options);
      return {
        raise: (bearer) => fence.raise(id, bearer, { id }),
        write: async (bearer, value) => {
          await fence.put(id, bearer, { Item: { id, value } });
        },
        read: async () => (await itemOf(id))?.value ?? 0,
      };
    });
  });

  tellPauses('dynamodb', () => {
    const at = { TableName: 'paused', Key: { id: 'account:0' } };
    return {
      address: server.endpoint,
      balance: async () => (await document.get({ ...at, ConsistentRead: true })).Item?.value,
      reset: async () => {
        await document.put({ TableName: 'paused', Item: { id: 'account:0', value: 100 } });
      },
    };
  });

  it('the program of the document does what it says', async () => {
    await createTable(db, 'invoice');
    await document.put({ TableName: 'invoice', Item: { id: '42', amount: 100 } });
    const environment = {
      AWS_ENDPOINT_URL: server.endpoint,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'pawl',
      AWS_SECRET_ACCESS_KEY: 'pawl-test',
    };
    expect(runDocumented('dynamodb', environment, 'fences')).toBe('150, honoured 7\n');
  });

  it('S8: raise keeps the item as it is, and one that is not there becomes its key and the token', async () => {
    const id = newId();
    const fence = dynamodbFence(document, options);
    expect(await fence.highest({ id })).toBeUndefined();
    await fence.raise(id, 7n, { id });
    expect(await itemOf(id)).toEqual({ id, pawl_token: '0000000000000000007' });
    await fence.put(id, 7n, { Item: { id, a: 1 } });
    await fence.raise(id, 8n, { id });
    expect(await itemOf(id)).toEqual({ id, a: 1, pawl_token: '0000000000000000008' });
    await fence.put(id, 8n, { Item: { id } });
    await expect(fence.put(id, 7n, { Item: { id, a: 2 } })).rejects.toThrow(stale);
    expect(await fence.highest({ id })).toBe(8n);
  });

  it.each([
    ['SET a = :v', { a: 5 }],
    ['SET b = :v, a = :v', { a: 5, b: 5 }],
    ['REMOVE b SET a = :v', { a: 5 }],
    ['ADD b :v set a = :v', { a: 5, b: 6 }],
    ['ADD #SET :v', { b: 1, SET: 5 }],
    ['REMOVE b\nSET\n a = :v', { a: 5 }],
  ])('writes the token with the update %s', async (UpdateExpression, expected) => {
    const id = newId();
    await document.put({ TableName: table, Item: { id, b: 1 } });
    const fence = dynamodbFence(document, options);
    const { Attributes } = await fence.update(id, 3n, {
      Key: { id },
      UpdateExpression,
      ...(UpdateExpression.includes('#SET') ? { ExpressionAttributeNames: { '#SET': 'SET' } } : {}),
      ExpressionAttributeValues: { ':v': 5 },
      ReturnValues: 'ALL_NEW',
    });
    expect(Attributes).toEqual({
      id,
      ...(UpdateExpression.includes('REMOVE') ? {} : { b: 1 }),
      ...expected,
      pawl_token: '0000000000000000003',
    });
    await expect(fence.raise(id, 2n, { id })).rejects.toThrow(stale);
  });

  it('S7: a condition of the caller’s has to hold too, and is not taken for a stale token', async () => {
    const id = newId();
    const fence = dynamodbFence(document, options);
    await fence.put(id, 3n, { Item: { id, a: 1 } });
    const onlyIf = (value: number, token: bigint) =>
      fence.update(id, token, {
        Key: { id },
        UpdateExpression: 'SET a = :new',
        ConditionExpression: 'a = :old OR a = :old',
        ExpressionAttributeValues: { ':old': value, ':new': value + 1 },
      });
    await onlyIf(1, 3n);
    await expect(onlyIf(1, 3n)).rejects.toMatchObject({ name: 'ConditionalCheckFailedException' });
    await expect(onlyIf(2, 2n)).rejects.toThrow(stale);
    await expect(onlyIf(9, 2n)).rejects.toThrow(stale);
    expect(await itemOf(id)).toMatchObject({ a: 2 });
  });

  it('S7, S8: whatever writers do at once, no effect of a lower token lands after a higher one was honoured', async () => {
    const step = fc.record({
      token: fc.bigInt({ min: 8n, max: 12n }),
      act: fc.constantFrom('raise' as const, 'log' as const, 'log' as const),
    });
    const writers = fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), { minLength: 2, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(writers, async (programs) => {
        const id = newId();
        const fence = dynamodbFence(document, options);
        let accepted = 0;
        let honoured = 0n;
        const run = async (steps: (typeof programs)[number]) => {
          for (const { token, act } of steps) {
            const before = honoured;
            try {
              if (act === 'raise') await fence.raise(id, token, { id });
              else {
                await fence.update(id, token, {
                  Key: { id },
                  UpdateExpression: 'SET #log = list_append(if_not_exists(#log, :none), :token)',
                  ExpressionAttributeNames: { '#log': 'log' },
                  ExpressionAttributeValues: { ':none': [], ':token': [token] },
                });
                accepted += 1;
              }
            } catch (error) {
              expect(error).toEqual(stale);
              continue;
            }
            expect(token).toBeGreaterThanOrEqual(before);
            if (token > honoured) honoured = token;
          }
        };
        await Promise.all(programs.map(run));
        const logged: number[] = (await itemOf(id))?.log ?? [];
        expect(logged).toHaveLength(accepted);
        expect(logged).toEqual(logged.toSorted((a, b) => a - b));
        expect(await fence.highest({ id })).toBe(honoured);
      }),
      { numRuns: 40 },
    );
  }, 60_000);

  it('S7: where an answer was lost and a higher token came before the repetition, it says that it does not know', async () => {
    const id = newId();
    const client = dynamodbClient(server.endpoint);
    const { requestHandler } = client.config;
    const handle = requestHandler.handle.bind(requestHandler);
    const other = dynamodbFence(document, options);
    let sent = 0;
    requestHandler.handle = async (request, handlerOptions) => {
      const answer = await handle(request, handlerOptions);
      sent += 1;
      if (sent > 1) return answer;
      await other.raise(id, 9n, { id });
      throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET', name: 'TimeoutError' });
    };
    const fence = dynamodbFence(client, options);
    const write = fence.put(id, 4n, { Item: { id: { S: id }, a: { N: '1' } } });
    await expect(write).rejects.toMatchObject({ code: 'PAWL_WRITE_UNKNOWN', outcome: 'indefinite' });
    expect(await itemOf(id)).toMatchObject({ a: 1 });
    client.destroy();
  });

  it('S7: refuses a bare token that jumps beyond the bound, at a new item too', async () => {
    const id = newId();
    const fence = dynamodbFence(document, { ...options, maxJump: 100n });
    await expect(fence.raise(id, 101n, { id })).rejects.toMatchObject({
      code: 'PAWL_TOKEN_JUMP',
      highest: undefined,
    });
    await fence.raise(id, 100n, { id });
    await expect(fence.put(id, 201n, { Item: { id } })).rejects.toMatchObject({
      code: 'PAWL_TOKEN_JUMP',
      highest: 100n,
    });
    await expect(fence.raise(id, 99n, { id })).rejects.toThrow(stale);
    await fence.raise(id, 200n, { id });
  });

  it('three functions of a DynamoDBClient do as well, and the attribute may have any name', async () => {
    const id = newId();
    const client = new DynamoDBClient({
      endpoint: server.endpoint,
      region: 'us-east-1',
      credentials: { accessKeyId: 'pawl', secretAccessKey: 'pawl-test' },
    });
    const fence = dynamodbFence(
      {
        putItem: (input) => client.send(new PutItemCommand(input)),
        updateItem: (input) => client.send(new UpdateItemCommand(input)),
        getItem: (input) => client.send(new GetItemCommand(input)),
      },
      { ...options, attribute: 'size' },
    );
    await fence.put(id, 2n, { Item: { id: { S: id } } });
    await expect(fence.raise(id, 1n, { id: { S: id } })).rejects.toThrow(stale);
    expect(await itemOf(id)).toEqual({ id, size: '0000000000000000002' });
    client.destroy();
  });

  it('refuses what is no key, what is no client, and an attribute that is no token', async () => {
    const id = newId();
    const fence = dynamodbFence(document, options);
    await expect(fence.raise(id, 1n, { other: id })).rejects.toThrow(usage);
    await expect(fence.update(id, 1n, {} as DynamodbUpdate)).rejects.toThrow(usage);
    await expect(fence.put(id, 1n, { Item: { a: 1 } })).rejects.toThrow(usage);
    await expect(fence.raise('', 1n, { id })).rejects.toThrow(usage);
    expect(await itemOf(id)).toBeUndefined();
    expect(() => dynamodbFence({} as DynamoDB, options)).toThrow(usage);
    expect(() => dynamodbFence(db, { table: '', key: ['id'] })).toThrow(usage);
    expect(() => dynamodbFence(db, { table, key: [] })).toThrow(usage);
    expect(() => dynamodbFence(db, { ...options, attribute: 'id' })).toThrow(usage);
    for (const wrong of [7, 'seven']) {
      await document.put({ TableName: table, Item: { id, pawl_token: wrong } });
      await expect(fence.highest({ id })).rejects.toThrow(usage);
      await expect(fence.raise(id, 1n, { id })).rejects.toThrow(usage);
    }
  });
});
