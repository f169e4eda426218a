import { S3 } from '@aws-sdk/client-s3';
import { DynamoDBDocument } from '@aws-sdk/lib-dynamodb';
import { dynamodbFence } from '../../src/fences/dynamodb/index.ts';
import { s3Fence } from '../../src/fences/s3/index.ts';
import { CEPH_KEY } from './ceph-server.ts';
import { dynamodbClient } from './dynamodb-server.ts';
import type { Account } from './paused-accounts.ts';

/** @param address of the server. The account is the object `account:0` of the bucket `paused`. */
export async function inS3(address: string): Promise<Account> {
  const s3 = new S3({
    endpoint: address,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: CEPH_KEY,
  });
  const fence = s3Fence(s3, { bucket: 'paused' });
  const object = { Bucket: 'paused', Key: 'account:0' };
  return {
    raise: (lease) => fence.raise('account:0', lease),
    read: async () => Number(Buffer.from((await fence.read('account:0'))?.body ?? '0').toString()),
    fencedWrite: (lease, value) => fence.write('account:0', lease, `${value}`),
    write: (value) => s3.putObject({ ...object, Body: `${value}` }),
    close: async () => s3.destroy(),
  };
}

/** @param address of the server. The account is the item `account:0` of the table `paused`. */
export async function inDynamodb(address: string): Promise<Account> {
  const client = dynamodbClient(address);
  const db = DynamoDBDocument.from(client);
  const fence = dynamodbFence(db, { table: 'paused', key: ['id'] });
  const at = { TableName: 'paused', Key: { id: 'account:0' } };
  const to = (value: number) => ({
    UpdateExpression: 'SET #value = :value',
    ExpressionAttributeNames: { '#value': 'value' },
    ExpressionAttributeValues: { ':value': value },
  });
  return {
    raise: (lease) => fence.raise('account:0', lease, at.Key),
    read: async () => (await db.get({ ...at, ConsistentRead: true })).Item?.value,
    fencedWrite: (lease, value) => fence.update('account:0', lease, { Key: at.Key, ...to(value) }),
    write: (value) => db.update({ ...at, ...to(value) }),
    close: async () => client.destroy(),
  };
}
