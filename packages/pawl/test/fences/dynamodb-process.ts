/** A process that speaks as DynamoDB does, with its data in memory. Prints the port that it listens on. */
import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';

// It has no types.
const dynalite = createRequire(import.meta.url)('dynalite') as (options: { createTableMs: number }) => Server;

const server = dynalite({ createTableMs: 0 });
// The connection of a process that is stopped has to be there when it goes on.
server.keepAliveTimeout = 600_000;
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
