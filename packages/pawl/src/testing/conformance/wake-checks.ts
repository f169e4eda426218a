import { deepEqual, equal } from 'node:assert/strict';
import type { Engine, Version } from '../../engines/engine.ts';
import { type Check, commit, mustCommit, newId, put, until, valueAt, write } from './subject.ts';

/** How long a wake may take on a loaded machine, in ms. */
const LIMIT_MS = 5000;
const ROUNDS = 100;

/** Inboxes and the wakes that commits send to them. */
export const wakeChecks: readonly Check[] = [
  [
    'L3: a wake reaches its inbox and no other, with the version of its commit',
    async (trial) => {
      const [one, other] = [await trial.open(), await trial.open()];
      const [mine, yours] = [newId(), newId()];
      const got: [string, Version][] = [];
      const wrong: string[] = [];
      other.subscribe(mine, (message, version) => got.push([message, version]));
      other.subscribe(yours, (message) => wrong.push(message));
      await inForce(other);
      const message = 'wake "up" \u2028 😀';
      const version = await mustCommit(one, { ...put('a', '1'), wakes: [{ inbox: mine, message }] });
      await until(trial, LIMIT_MS, 'The wake', () => got.length > 0);
      deepEqual(got[0], [message, version]);
      deepEqual(wrong, []);
    },
  ],
  [
    'L3: a wake from the same engine arrives as well, and several arrive in order',
    async (trial) => {
      const engine = await trial.open();
      const inbox = newId();
      const got: string[] = [];
      engine.subscribe(inbox, (message) => got.push(message));
      await inForce(engine);
      for (const message of ['1', '2', '3']) await mustCommit(engine, write({ wakes: [{ inbox, message }] }));
      await until(trial, LIMIT_MS, 'The last wake', () => got.includes('3'));
      deepEqual([...new Set(got)], ['1', '2', '3']);
    },
  ],
  [
    'a write that does not happen wakes nobody, and who has unsubscribed hears nothing',
    async (trial) => {
      const [one, other] = [await trial.open(), await trial.open()];
      const [inbox, left] = [newId(), newId()];
      const got: string[] = [];
      other.subscribe(inbox, (message) => got.push(message));
      const leave = other.subscribe(left, (message) => got.push(message));
      await inForce(other);
      leave();
      await inForce(other);
      await mustCommit(one, put('a', '1'));
      const failed = { ...put('a', '2', null), wakes: [{ inbox, message: 'failed' }] };
      equal((await commit(one, failed)).kind, 'conflict');
      await mustCommit(one, write({ wakes: [{ inbox: left, message: 'left' }] }));
      await mustCommit(one, write({ wakes: [{ inbox, message: 'last' }] }));
      await until(trial, LIMIT_MS, 'The last wake', () => got.includes('last'));
      deepEqual([...new Set(got)], ['last']);
    },
  ],
  [
    'L3: no wake is lost between the check and the wait',
    async (trial) => {
      const [waker, waiter] = [await trial.open(), await trial.open()];
      for (let round = 0; round < ROUNDS; round += 1) {
        const inbox = newId();
        const key = `round-${round}`;
        let woken = false;
        const stop = waiter.subscribe(inbox, () => {
          woken = true;
        });
        // The other side may commit before, while or after this side looks; either way one of both tells of it.
        const look = valueAt(waiter, key).then((value) => {
          if (value !== undefined) woken = true;
        });
        for (let turn = 0; turn < round % 5; turn += 1) await undefined;
        await Promise.all([look, mustCommit(waker, { ...put(key, '1'), wakes: [{ inbox, message: 'go' }] })]);
        await until(trial, LIMIT_MS, `The wake of round ${round}`, () => woken);
        stop();
      }
    },
  ],
];

/** A subscription is in force once a later call was answered. */
async function inForce(engine: Engine): Promise<void> {
  await valueAt(engine, 'any');
}
