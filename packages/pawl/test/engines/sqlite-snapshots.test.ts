import { DatabaseSync } from 'node:sqlite';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { Connection } from '../../src/engines/sqlite/connection.ts';
import { Patience } from '../../src/engines/sqlite/patience.ts';
import { Snapshots } from '../../src/engines/sqlite/snapshots.ts';
import { ClosedError } from '../../src/errors.ts';

/** Snapshots of a database in memory, and how many transactions they took. */
function snapshots() {
  const db = new DatabaseSync(':memory:');
  onTestFinished(() => db.close());
  const state = { taken: 0, open: true };
  class Counted extends Connection {
    override read<T>(look: () => T): T {
      state.taken += 1;
      return super.read(look);
    }
  }
  const all = new Snapshots({
    connection: new Counted(db, 'it', () => {}),
    patience: new Patience(systemClock, 100, 'it'),
    checkOpen: () => {
      if (!state.open) throw new ClosedError('It');
    },
  });
  return { all, state };
}

/** As SQLite says that another process has the lock. */
function busy(): Error {
  return Object.assign(new Error('database is locked'), { code: 'ERR_SQLITE_ERROR', errcode: 5 });
}

it('looks of the same turn share a snapshot, and one that fails fails alone', async () => {
  const { all, state } = snapshots();
  const failing = all.take(() => {
    throw new Error('not mine');
  });
  const [one, other] = [all.take(() => 1), all.take(() => 2)];
  await expect(failing).rejects.toThrow('not mine');
  expect([await one, await other, state.taken]).toEqual([1, 2, 1]);
  expect([await all.take(() => 3), state.taken]).toEqual([3, 2]);
});

it('looks are repeated together while the database is busy, and told so in the end', async () => {
  const { all, state } = snapshots();
  let left = 2;
  const one = all.take(() => 1);
  const other = all.take(() => {
    if (left-- > 0) throw busy();
    return 2;
  });
  expect([await one, await other, state.taken]).toEqual([1, 2, 3]);
  const never = all.take(() => {
    throw busy();
  });
  await expect(never).rejects.toMatchObject({ code: 'PAWL_ENGINE_UNAVAILABLE', outcome: 'definite' });
});

it('looks that were not begun when it is closed are told so', async () => {
  const { all, state } = snapshots();
  const look = all.take(() => 1);
  state.open = false;
  await expect(look).rejects.toMatchObject({ code: 'PAWL_CLOSED' });
  expect(state.taken).toBe(0);
});
