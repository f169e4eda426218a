import type { Token } from '../../token.ts';
import { LabLock } from '../lab-lock.ts';
import type { Block } from '../lesson.ts';

const NODES = 5;
const TTL_S = 10;

/** A lock that a majority of nodes has to be up for. */
class ReplicatedLock {
  up = NODES;
  readonly #lock = new LabLock(TTL_S);

  acquire(who: string, nowS: number): Token | null {
    return this.up > NODES / 2 ? this.#lock.acquire(who, nowS) : null;
  }
}

export function replicationFigures() {
  const lock = new ReplicatedLock();
  const a = lock.acquire('A', 0);
  lock.up = 3;
  const b = lock.acquire('B', 10.1);
  lock.up = 2;
  const c = lock.acquire('C', 20);
  return {
    rows: [
      ['single server', '0 faults', 'yes', 'needs fencing'],
      ['Raft / ZooKeeper', 'f of 2f+1', 'yes', 'needs fencing'],
      ['Redlock (N Redis)', 'f of 2f+1', 'clock-dependent', 'needs fencing'],
    ],
    tryIt: {
      nodes: NODES,
      twoDown: { bToken: Number(b) },
      threeDown: { acquire: c },
      aStillHoldsToken: Number(a),
    },
  };
}

export const replication: Block = {
  number: 6,
  title: 'One lock server is no lock service',
  lesson: 'consensus keeps the service up and does nothing for the client',
  needs: [3],
  measure() {
    const figures = replicationFigures();
    const { tryIt } = figures;
    return {
      figures,
      setting: 'Nothing is simulated here: what each design promises is a statement, not a measurement.',
      table: {
        columns: ['design', 'survives', 'mutual exclusion', 'and still'],
        rows: figures.rows,
      },
      finding:
        'Every row needs a fence. Replication decides who may hand out the lock; the dangerous stretch lies between the grant ' +
        'and the write, in the client, where no agreement among servers reaches. Redlock rests on clocks and pauses besides.',
      tryIt: {
        invitation: `A lock behind ${NODES} nodes. A acquires it; then nodes fail.`,
        table: {
          columns: ['nodes down', 'who asks', 'gets'],
          rows: [
            [0, 'A', `token ${tryIt.aStillHoldsToken}`],
            [2, 'B, after the lease', `token ${tryIt.twoDown.bToken}`],
            [
              3,
              'C',
              tryIt.threeDown.acquire === null ? 'nothing: no majority' : String(tryIt.threeDown.acquire),
            ],
          ],
        },
        finding: `The service did all it promised, and A still has token ${tryIt.aStillHoldsToken} and may write with it at any time.`,
      },
    };
  },
};
