import { LabLock } from '../lab-lock.ts';
import { type Block, yesNo } from '../lesson.ts';
import { FencedResource } from '../resource.ts';

const TTL_S = 10;
const SENT_AT_S = 9.9;
const B_WRITES_AT_S = 10.2;
const DELAYS_S = [0.01, 0.05, 0.2, 0.5];

/** A is never paused: it checks, holds, and sends its write, which the network holds back. */
export function delayedWrite(delayS: number, fenced: boolean) {
  const lock = new LabLock(TTL_S);
  const resource = new FencedResource();
  const a = lock.acquire('A', 0);
  const heldAtSend = lock.holders(SENT_AT_S).includes('A');
  const lands = [
    { atS: SENT_AT_S + delayS, who: 'A', value: 200 },
    { atS: B_WRITES_AT_S, who: 'B', value: 100 },
  ].sort((x, y) => x.atS - y.atS);
  const b = lock.acquire('B', TTL_S);
  for (const { who, value } of lands) {
    if (fenced) resource.writeFenced(who, value, who === 'A' ? a : b);
    else resource.write(who, value);
  }
  return { delayS, heldAtSend, writers: resource.writers.join(''), final: resource.value };
}

export function inFlightFigures() {
  return DELAYS_S.map((delayS) => {
    const bare = delayedWrite(delayS, false);
    const fenced = delayedWrite(delayS, true);
    return { delayS, heldAtSend: bare.heldAtSend, unfenced: bare.final, fenced: fenced.final };
  });
}

export const inFlight: Block = {
  number: 15,
  title: 'Delayed in flight',
  lesson: 'no pause at all: the network holds the write',
  needs: [4],
  measure() {
    const figures = inFlightFigures();
    return {
      figures,
      setting: `A holds a lease until ${TTL_S} s, checks it and sends its write at ${SENT_AT_S} s. B acquires at ${TTL_S} s and writes at ${B_WRITES_AT_S} s.`,
      table: {
        columns: ['under way for', 'A held when it sent', 'ends at, unfenced', 'ends at, fenced'],
        rows: figures.map((row) => [
          `${row.delayS} s`,
          yesNo(row.heldAtSend),
          row.unfenced ?? '',
          row.fenced ?? '',
        ]),
      },
      finding:
        'A did everything right at every moment. What arrives is still an old write, and only the place where it arrives can tell.',
      tryIt: {
        invitation: 'Would a check right before the send have helped?',
        table: {
          columns: ['check before the send', 'late write landed'],
          rows: figures.map((row) => [row.heldAtSend ? 'passes' : 'fails', yesNo(row.unfenced === 200)]),
        },
        finding: 'It passes every time. No care taken in the client reaches the message that has left it.',
      },
    };
  },
};
