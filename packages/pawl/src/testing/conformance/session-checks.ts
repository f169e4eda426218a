import { deepEqual, equal, ok } from 'node:assert/strict';
import { SystemClock } from '../../clock.ts';
import type { Engine } from '../../engines/engine.ts';
import { type Check, commit, mustCommit, newId, put, type Trial, until, valueAt, write } from './subject.ts';

/** How much later than promised an ending may be told on a loaded machine, in ms. */
const SLACK_MS = 5000;

const clock = new SystemClock();

/** Sessions and their endings. */
export const sessionChecks: readonly Check[] = [
  [
    'a session lasts while it is kept alive, and its TTL starts anew each time',
    (trial) => lastsWhileRenewed(trial, async (engine, id) => (await engine.keepAlive([id])).has(id)),
  ],
  [
    'S3: an expired session is over, on every engine, for good',
    async ({ open, ttlMs, subject }) => {
      const [one, other] = [await open(), await open()];
      const id = newId();
      await one.openSession(id, ttlMs);
      await subject.passTime(ttlMs * 2 + one.guarantees.sweepMs);
      for (const engine of [one, other]) {
        equal((await engine.keepAlive([id])).size, 0);
        equal(await engine.openSession(id, ttlMs), false);
        deepEqual(await commit(engine, write({ alive: [id], puts: [{ key: 'a', value: '1' }] })), {
          kind: 'sessionsEnded',
          sessions: [id],
        });
      }
      equal(await valueAt(one, 'a'), undefined);
    },
  ],
  [
    'S3: a session that was ended is over at once, and ending it again does nothing',
    async ({ open, ttlMs }) => {
      const [one, other] = [await open(), await open()];
      const id = newId();
      await one.openSession(id, ttlMs * 100);
      await other.endSession(id);
      await one.endSession(id);
      equal((await one.keepAlive([id])).size, 0);
      equal(await one.openSession(id, ttlMs), false);
      equal((await commit(one, write({ alive: [id] }))).kind, 'sessionsEnded');
    },
  ],
  [
    'S3: a session that was never opened counts as ended',
    async ({ open }) => {
      const engine = await open();
      equal((await engine.keepAlive([newId()])).size, 0);
      equal((await commit(engine, write({ alive: [newId()] }))).kind, 'sessionsEnded');
      await engine.endSession(newId());
    },
  ],
  [
    'S3: one ended session among many fails the write, and the others live on',
    async ({ open, ttlMs }) => {
      const engine = await open();
      const ids = [newId(), newId(), newId()];
      for (const id of ids) await engine.openSession(id, ttlMs * 100);
      const [first = ''] = ids;
      await engine.endSession(first);
      deepEqual(await commit(engine, { ...put('a', '1'), alive: ids }), {
        kind: 'sessionsEnded',
        sessions: [first],
      });
      deepEqual(await engine.keepAlive(ids), new Set(ids.slice(1)));
    },
  ],
  [
    'opening a session again keeps it alive',
    (trial) => lastsWhileRenewed(trial, (engine, id, ttlMs) => engine.openSession(id, ttlMs)),
  ],
  [
    'L1: an expired session is told to whoever watches, on every engine, in time',
    async (trial) => {
      const { open, ttlMs } = trial;
      const [one, other] = [await open(), await open()];
      const told = [new Set<string>(), new Set<string>()];
      one.watchEndings((ids) => addTo(told[0], ids));
      other.watchEndings((ids) => addTo(told[1], ids));
      const [short, long] = [newId(), newId()];
      await one.openSession(short, ttlMs);
      await one.openSession(long, ttlMs * 1000);
      const limitMs = ttlMs + one.guarantees.sweepMs + SLACK_MS;
      await until(trial, limitMs, 'The news of the ending', () => told.every((ids) => ids.has(short)));
      ok(told.every((ids) => !ids.has(long)));
    },
  ],
  [
    'L1: a session that was ended is told to whoever watches',
    async (trial) => {
      const [one, other] = [await trial.open(), await trial.open()];
      const told = new Set<string>();
      other.watchEndings((ids) => addTo(told, ids));
      const id = newId();
      await one.openSession(id, trial.ttlMs * 1000);
      await one.endSession(id);
      await until(trial, other.guarantees.sweepMs + SLACK_MS, 'The news of the ending', () => told.has(id));
    },
  ],
  [
    'L1: an ending nobody watched is told to the next who does, until it is forgotten',
    async (trial) => {
      const engine = await trial.open();
      const id = newId();
      await engine.openSession(id, trial.ttlMs * 1000);
      await engine.endSession(id);
      for (const watcher of [engine, await trial.open()]) {
        const told = new Set<string>();
        const stop = watcher.watchEndings((ids) => addTo(told, ids));
        await until(trial, engine.guarantees.sweepMs + SLACK_MS, 'The news of the ending', () =>
          told.has(id),
        );
        stop();
      }
      await engine.forgetSessions([id]);
      const told = new Set<string>();
      const last = await trial.open();
      last.watchEndings((ids) => addTo(told, ids));
      await trial.subject.passTime(2 * engine.guarantees.sweepMs + 50);
      equal(told.has(id), false);
      equal((await engine.keepAlive([id])).size, 0);
    },
  ],
  [
    'L1: an ending is told again until it is forgotten: whoever cleans up may fail',
    async (trial) => {
      const engine = await trial.open();
      const id = newId();
      let times = 0;
      engine.watchEndings((ids) => {
        times += ids.filter((each) => each === id).length;
      });
      await engine.openSession(id, trial.ttlMs * 1000);
      await engine.endSession(id);
      await until(trial, 3 * SLACK_MS, 'Being told twice', () => times >= 2);
    },
  ],
  [
    'an ended session does not touch what others wrote',
    async ({ open, ttlMs }) => {
      const engine = await open();
      const id = newId();
      await engine.openSession(id, ttlMs * 100);
      await mustCommit(engine, { ...put('a', '1'), alive: [id] });
      await engine.endSession(id);
      equal(await valueAt(engine, 'a'), '1');
    },
  ],
  [
    '1,000 sessions are kept alive together and end together',
    async ({ open, ttlMs, subject }) => {
      const engine = await open();
      const openAll = async (longMs: number) => {
        const ids = Array.from({ length: 1000 }, newId);
        // A store takes only so many at once within its limit of time.
        for (let i = 0; i < 1000; i += 100)
          await Promise.all(ids.slice(i, i + 100).map((id) => engine.openSession(id, longMs)));
        return { ids, longMs, alive: (await engine.keepAlive(ids)).size };
      };
      let opened = await openAll(ttlMs * 4);
      // On a loaded machine the first may be over before the last is open.
      while (opened.alive < 1000 && opened.longMs < ttlMs * 32) opened = await openAll(opened.longMs * 2);
      const { ids, longMs, alive } = opened;
      equal(alive, 1000);
      await subject.passTime(longMs + engine.guarantees.sweepMs + ttlMs);
      equal((await engine.keepAlive(ids)).size, 0);
    },
  ],
];

/**
 * A session lives on through twice its TTL, renewed by `renew` each half of it. Where the machine was too busy to renew it in
 * time, its ending says nothing of the engine, and another one is tried with twice the TTL.
 */
async function lastsWhileRenewed(
  trial: Trial,
  renew: (engine: Engine, id: string, ttlMs: number) => Promise<boolean>,
): Promise<void> {
  const engine = await trial.open();
  for (let ttlMs = trial.ttlMs; ; ttlMs *= 2) {
    const late = await renewedTooLate(trial, engine, ttlMs, renew);
    if (!late) return;
    ok(ttlMs < 32 * trial.ttlMs, `No session of ${ttlMs} ms could be renewed in time on this machine.`);
  }
}

/** @returns whether the session ended because it was renewed too late. @throws AssertionError where it ended before. */
async function renewedTooLate(
  { subject }: Trial,
  engine: Engine,
  ttlMs: number,
  renew: (engine: Engine, id: string, ttlMs: number) => Promise<boolean>,
): Promise<boolean> {
  const id = newId();
  let renewedAt = clock.monotonicMs();
  const within = () => clock.monotonicMs() - renewedAt < ttlMs;
  equal(await engine.openSession(id, ttlMs), true);
  for (let i = 0; i < 4; i += 1) {
    await subject.passTime(ttlMs / 2);
    const startedAt = clock.monotonicMs();
    if (!(await renew(engine, id, ttlMs))) {
      equal(within(), false, 'The session ended before its TTL had passed.');
      return true;
    }
    renewedAt = startedAt;
  }
  const { kind } = await commit(engine, write({ alive: [id], puts: [{ key: 'a', value: '1' }] }));
  if (kind === 'sessionsEnded' && !within()) return true;
  equal(kind, 'committed');
  return false;
}

function addTo(told: Set<string> | undefined, ids: readonly string[]): void {
  for (const id of ids) told?.add(id);
}
