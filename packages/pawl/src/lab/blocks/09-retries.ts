import { LabLock } from '../lab-lock.ts';
import { type Block, yesNo } from '../lesson.ts';

const TTL_S = 10;

/** The grant was made, its reply lost; the client asks again, under the same request id or a new one. */
function retry(sameId: boolean) {
  const lock = new LabLock(TTL_S);
  const first = lock.acquire('A', 0, { request: 'r1' });
  const second = lock.acquire('A', 1, { request: sameId ? 'r1' : 'r2' });
  // Under a new id the client stands before its own grant until its session ends, if it stops keeping it alive.
  const waitsS = second === null ? TTL_S : 0;
  return { sameId, firstToken: Number(first), secondToken: second === null ? null : Number(second), waitsS };
}

/** A duplicate of the acquire that comes in after the release, with the release remembered or not. */
function lateDuplicate(remembered: boolean) {
  const lock = new LabLock(TTL_S);
  lock.acquire('A', 0, { request: 'r1' });
  lock.release('A', 'r1', 1, !remembered);
  const again = lock.acquire('A', 2, { request: 'r1' });
  return { remembered, grantedAgain: again !== null, wedgedForB: lock.acquire('B', 3) === null };
}

export function retryFigures() {
  return { rows: [retry(false), retry(true)], tryIt: [lateDuplicate(false), lateDuplicate(true)] };
}

export const retries: Block = {
  number: 9,
  title: 'Re-entrancy across retries',
  lesson: 'after a lost reply only a request id tells a retry from a rival',
  needs: [7],
  measure() {
    const figures = retryFigures();
    return {
      figures,
      setting: 'A acquires the lock. The grant is made, but the reply is lost on the way, so A asks again.',
      table: {
        columns: ['the retry comes under', 'first token', 'the retry gets', 'A waits for itself'],
        rows: figures.rows.map((row) => [
          row.sameId ? 'the same id' : 'a new id',
          row.firstToken,
          row.secondToken === null ? 'nothing: held' : `token ${row.secondToken}`,
          `${row.waitsS} s`,
        ]),
      },
      finding:
        'Under the same id the retry is the same acquire and yields the same grant. Under a new one A is its own rival, and waits for a holder that nobody knows of.',
      tryIt: {
        invitation: 'The network delivers the acquire a second time, after the release.',
        table: {
          columns: ['the release is remembered', 'granted again', 'B finds it held'],
          rows: figures.tryIt.map((row) => [
            yesNo(row.remembered),
            yesNo(row.grantedAgain),
            yesNo(row.wedgedForB),
          ]),
        },
        finding:
          'An id protects only as long as somebody remembers it: a grant made to a ghost of a request is held by nobody and blocks everybody.',
      },
    };
  },
};
