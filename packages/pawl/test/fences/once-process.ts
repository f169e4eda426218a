import { appendFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { once, sqliteOnceStore } from '../../src/fences/once/index.ts';

/*
 * A process of its own that does something once. argv: database, log, onCrash, what ("crash": it is killed after the effect and before
 * the record). Prints what came of it.
 */
const [path = '', log = '', onCrash = '', what = ''] = process.argv.slice(2);
const db = new DatabaseSync(path);
db.exec('PRAGMA busy_timeout = 30000');
const store = sqliteOnceStore(db);

try {
  const value = await once(
    store,
    'mail',
    async () => {
      appendFileSync(log, `${process.pid}\n`);
      if (what === 'crash') process.kill(process.pid, 'SIGKILL');
      await new Promise((resolve) => setImmediate(resolve));
      return process.pid;
    },
    { onCrash: onCrash === 'repeat' ? 'repeat' : 'refuse', runMs: what === 'crash' ? 1 : 60_000 },
  );
  process.stdout.write(`${value}`);
} catch (error) {
  process.stdout.write(error instanceof Error && 'code' in error ? String(error.code) : String(error));
}
