import { LabLock } from '../lab-lock.ts';
import type { Block } from '../lesson.ts';

const QUEUES = [2, 10, 50];

/** Wake-ups until a queue is empty, if each release wakes all who wait. */
function wakeAll(waiters: number): number {
  let wakes = 0;
  for (let waiting = waiters; waiting > 0; waiting -= 1) wakes += waiting;
  return wakes;
}

/** The same with Pawl's core, counted from the news that its commits send. */
function wakeOne(waiters: number): number {
  const lock = new LabLock(3600);
  for (let i = 0; i <= waiters; i += 1) lock.acquire(`c${i}`, 0, { wait: true, request: 'r' });
  for (let i = 0; i < waiters; i += 1) lock.release(`c${i}`, 'r', 0, true);
  return lock.wakesSent;
}

export function herdFigures() {
  return QUEUES.map((waiters) => ({ waiters, all: wakeAll(waiters), one: wakeOne(waiters) }));
}

export const herd: Block = {
  number: 14,
  title: 'The herd on release',
  lesson: 'wake one, not all',
  needs: [2],
  measure() {
    const figures = herdFigures();
    return {
      figures,
      setting: 'A lock with a queue, released again and again until nobody waits.',
      table: {
        columns: ['waiters', 'wake-ups, all each time', 'wake-ups, one each time'],
        rows: figures.map((row) => [row.waiters, row.all, row.one]),
      },
      finding:
        'Waking all costs a square, and all but one of those woken only find that they have to wait again. One release has one heir.',
      tryIt: {
        invitation: 'How many of them were for nothing?',
        table: {
          columns: ['waiters', 'for nothing'],
          rows: figures.map((row) => [row.waiters, row.all - row.one]),
        },
        finding:
          'With a queue in order the heir is known at the release, and can be told that it holds, in the same commit.',
      },
    };
  },
};
