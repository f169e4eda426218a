import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { sqliteEngine } from '../../src/engines/sqlite/index.ts';
import { Arena } from './arena.ts';
import { ServerProcess } from './server-process.ts';

/** Set it to see more of it than the tests have time for: `PAWL_CHAOS_SECONDS=60`. */
const FOR_MS = Number(process.env.PAWL_CHAOS_SECONDS ?? 10) * 1000;
const KILL_EVERY_MS = 5000;
const PROCESSES = 4;
const CLIENTS = 250;

describe('faults around the service', () => {
  it(
    'S1–S8: hold while 1,000 clients work and the server is killed and started again, and again',
    async () => {
      const arena = new Arena({ ttlMs: 10_000, locks: 300, clients: CLIENTS });
      const server = new ServerProcess(arena.file('locks.db'));
      try {
        await server.start();
        await arena.start(Array.from({ length: PROCESSES }, () => server.url));
        let kills = 0;
        for (let leftMs = FOR_MS; leftMs > 0; leftMs -= KILL_EVERY_MS) {
          await sleep(Math.min(leftMs, KILL_EVERY_MS));
          await server.kill();
          await server.start();
          kills += 1;
        }
        expect(kills).toBeGreaterThan(1);
        await arena.progress(CLIENTS);
        const engine = await sqliteEngine({ path: arena.file('locks.db') });
        await arena.judge(engine);
        await engine.close();
      } finally {
        arena.stop();
        await server.kill();
      }
    },
    FOR_MS + 180_000,
  );
});
