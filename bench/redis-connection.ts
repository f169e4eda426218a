import { Redis } from 'ioredis';

export async function connectRedis(port: number): Promise<Redis> {
  const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true });
  // A server that is stopped at the end is no error of the bench's.
  client.on('error', () => {});
  await client.connect();
  return client;
}
