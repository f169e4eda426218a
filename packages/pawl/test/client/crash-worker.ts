/** 32 clients that lock without pause, and say on stdout what they were granted, before they go on. Ended by SIGKILL. */
import { writeSync } from 'node:fs';
import { open } from '../../src/client/open.ts';
import { sqliteEngine } from '../../src/engines/sqlite/index.ts';

const CLIENTS = 32;
const LOCKS = 8;

const engine = await sqliteEngine({ path: process.argv[2] ?? '' });
await Promise.all(
  Array.from({ length: CLIENTS }, async (_, i) => {
    const pawl = open(engine);
    for (let n = i; ; n += 1) {
      const name = `lock-${n % LOCKS}`;
      const lease = await pawl.acquire(name, { ttlMs: 600_000 });
      writeSync(1, `granted ${name} ${lease.token}\n`);
      await new Promise((resolve) => setTimeout(resolve, n % 3));
      writeSync(1, `releasing ${name} ${lease.token}\n`);
      await lease.release();
    }
  }),
);
