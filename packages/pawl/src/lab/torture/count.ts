import { DatabaseSync } from 'node:sqlite';

/** What is left at the resource once all is over. */
export interface Count {
  /** Increments that were committed, so that their writers take them for done. */
  readonly updates: number;
  /** Where the counter stands. */
  readonly counter: number;
  /** Increments that are not in it. */
  readonly lost: number;
  /** Writes over what their writers had not read: one of them may undo many updates. */
  readonly lateWrites: number;
}

/** Makes the resource: a counter, and a log of all that was written to it. */
export function createResource(path: string): void {
  const db = new DatabaseSync(path);
  db.exec(`PRAGMA journal_mode = WAL; CREATE TABLE counter (value INTEGER NOT NULL); INSERT INTO counter VALUES (0);
    CREATE TABLE effect (token INTEGER, worker TEXT NOT NULL, value INTEGER NOT NULL)`);
  db.close();
}

/** Compares the counter with the log; each write stands in both, by one transaction. */
export function countUpdates(path: string): Count {
  const db = new DatabaseSync(path);
  try {
    const counter = Number(db.prepare('SELECT value FROM counter').get()?.value);
    const values = db.prepare('SELECT value FROM effect ORDER BY rowid').all();
    let [before, lateWrites, undone] = [0, 0, 0];
    for (const row of values) {
      const value = Number(row.value);
      if (value !== before + 1) lateWrites += 1;
      undone += before + 1 - value;
      before = value;
    }
    const lost = values.length - counter;
    if (before !== counter || undone !== lost) {
      throw new Error(
        `The log ends at ${before} and undid ${undone}; the counter is ${counter}, ${lost} lost.`,
      );
    }
    return { updates: values.length, counter, lost, lateWrites };
  } finally {
    db.close();
  }
}
