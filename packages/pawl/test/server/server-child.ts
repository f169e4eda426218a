import { sqliteEngine } from '../../src/engines/sqlite/index.ts';
import { serve } from '../../src/server/index.ts';

/** A server in a process of its own, over the store `argv[2]` on port `argv[3]`; prints its URL. */

const [, , path = '', port = '0'] = process.argv;
const { url } = await serve({ engine: await sqliteEngine({ path }), port: Number(port) });
process.stdout.write(`${url}\n`);
