import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { endProcess } from '../engines/server-tools.ts';

/** A dynalite of the test's own, on a free port, with its data in memory. */
export class DynamodbServer {
  endpoint = '';
  #process: ChildProcess | undefined;

  async start(): Promise<void> {
    const program = fileURLToPath(new URL('./dynamodb-process.ts', import.meta.url));
    const server = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#process = server;
    const port = await new Promise<string>((resolve, reject) => {
      server.stdout.once('data', (chunk) => resolve(String(chunk).trim()));
      server.once('exit', () => reject(new Error('dynalite ended before it was ready.')));
    });
    this.endpoint = `http://127.0.0.1:${port}`;
  }

  async stop(): Promise<void> {
    if (this.#process !== undefined) await endProcess(this.#process, 'SIGKILL');
  }
}

/** A client of any such server. */
export function dynamodbClient(endpoint: string): DynamoDB {
  return new DynamoDB({
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'pawl', secretAccessKey: 'pawl-test' },
  });
}

/** Makes a table whose key is a text `id`, and waits until it is there. */
export async function createTable(db: DynamoDB, TableName: string): Promise<void> {
  await db.createTable({
    TableName,
    KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
    AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
    BillingMode: 'PAY_PER_REQUEST',
  });
  while ((await db.describeTable({ TableName })).Table?.TableStatus !== 'ACTIVE') {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
