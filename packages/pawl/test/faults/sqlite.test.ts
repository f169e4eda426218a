import { setTimeout as sleep } from 'node:timers/promises';
import { describe, it } from 'vitest';
import { sqliteEngine } from '../../src/engines/sqlite/index.ts';
import { Arena } from './arena.ts';

describe('faults around SQLite', () => {
  it('S1–S8: hold while one process is paused for three times its TTL, and another killed', async () => {
    const ttlMs = 1000;
    const arena = new Arena({ ttlMs });
    try {
      const path = arena.file('locks.db');
      await arena.start([path, path, path]);
      await arena.progress(5);
      const [first, ...others] = arena.workers;
      first?.signal('SIGSTOP');
      await sleep(3 * ttlMs);
      await arena.progress(3, others);
      first?.signal('SIGCONT');
      await arena.progress(3);
      await arena.killOne();
      await arena.progress(5);
      const engine = await sqliteEngine({ path });
      await arena.judge(engine);
      await engine.close();
    } finally {
      arena.stop();
    }
  }, 120_000);
});
