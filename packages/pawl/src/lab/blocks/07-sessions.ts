import { LabLock } from '../lab-lock.ts';
import { type Block, yesNo } from '../lesson.ts';

const LOCKS = 100;
const TTL_S = 10;
const MINUTE_S = 60;
/** When the client dies. */
const DIES_AT_S = 60;

export function sessionsFigures() {
  const lock = new LabLock(TTL_S);
  const names = Array.from({ length: LOCKS }, (_, i) => `lock-${i}`);
  for (const name of names) lock.acquire('A', 0, { locks: [{ name, mode: 'exclusive', permits: null }] });
  let keepAlives = 0;
  let lastS = 0;
  for (let i = 1; (i * TTL_S) / 3 < DIES_AT_S; i += 1) {
    lastS = (i * TTL_S) / 3;
    lock.keepAlive('A', lastS);
    keepAlives += 1;
  }
  const heldAt = (nowS: number) => names.filter((name) => lock.holders(nowS, name).length > 0).length;
  const endsAtS = lastS + TTL_S;
  return {
    locks: LOCKS,
    keepAlivesForEach: keepAlives * LOCKS,
    keepAlivesForAll: keepAlives,
    lastKeepAliveS: Number(lastS.toFixed(2)),
    heldBefore: heldAt(endsAtS - 0.01),
    heldAfter: heldAt(endsAtS),
    lateKeepAlive: lock.keepAlive('A', endsAtS + 0.01),
  };
}

export const sessions: Block = {
  number: 7,
  title: 'Sessions',
  lesson: 'the server decides that you are gone, once, for all you hold',
  needs: [2],
  measure() {
    const figures = sessionsFigures();
    return {
      figures,
      setting: `A client holds ${LOCKS} locks with a TTL of ${TTL_S} s for ${MINUTE_S} s, renews at a third of the TTL, and dies.`,
      table: {
        columns: ['ownership', 'keep-alives in a minute'],
        rows: [
          ['a lease for each lock', figures.keepAlivesForEach],
          ['one session for all', figures.keepAlivesForAll],
        ],
      },
      finding:
        'Liveness is a fact about the client, not about a lock. Told once, it serves every lock, and it is judged in one place by one clock.',
      tryIt: {
        invitation: `The last keep-alive went out at ${figures.lastKeepAliveS} s. Look right before and at the end of the session, then keep alive once more.`,
        table: {
          columns: ['held before', 'held at the end', 'late keep-alive revives'],
          rows: [[figures.heldBefore, figures.heldAfter, yesNo(figures.lateKeepAlive)]],
        },
        finding:
          'All locks come free at one moment, and the end is final: were it not, a lock granted to the next could have two holders again.',
      },
    };
  },
};
