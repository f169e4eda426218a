import { DatabaseSync } from 'node:sqlite';
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
      // In the middle of a transaction it would keep all others from writing, which is SQLite's way.
      for (first?.signal('SIGSTOP'); !canWrite(path); first?.signal('SIGSTOP')) {
        first?.signal('SIGCONT');
        await sleep(20);
      }
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

function canWrite(path: string): boolean {
  const db = new DatabaseSync(path);
  try {
    db.exec('PRAGMA busy_timeout = 1000; BEGIN IMMEDIATE; ROLLBACK');
    return true;
  } catch {
    return false;
  } finally {
    db.close();
  }
}
