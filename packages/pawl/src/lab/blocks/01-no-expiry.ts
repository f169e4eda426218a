import { type Block, yesNo } from '../lesson.ts';

/** Deliberately wrong: nothing but its holder can ever release it. */
class LockWithoutExpiry {
  owner: string | null = null;

  acquire(who: string): boolean {
    if (this.owner !== null) return false;
    this.owner = who;
    return true;
  }

  release(who: string): void {
    if (this.owner === who) this.owner = null;
  }
}

const CLIENTS = 10;
const CRASH_AT = 3;

/** How many of the clients get through, one after the other, if one dies while it holds the lock. */
export function completed(clients: number, crashAt: number | null): number {
  const lock = new LockWithoutExpiry();
  let done = 0;
  for (let client = 0; client < clients; client += 1) {
    if (!lock.acquire(`c${client}`) || client === crashAt) break;
    lock.release(`c${client}`);
    done += 1;
  }
  return done;
}

export function noExpiryFigures() {
  const rows = [null, CRASH_AT].map((crashAt) => {
    const done = completed(CLIENTS, crashAt);
    return { crashAt, completed: done, wedged: done < CLIENTS };
  });
  const lock = new LockWithoutExpiry();
  const blocked: string[] = [];
  for (let client = 0; client < 6; client += 1) {
    const who = `c${client}`;
    if (!lock.acquire(who)) blocked.push(who);
    else if (client !== 2) lock.release(who);
  }
  return {
    clients: CLIENTS,
    rows,
    tryIt: { clients: 6, diesAt: 'c2', blockedForever: blocked, ownerStill: lock.owner },
  };
}

export const noExpiry: Block = {
  number: 1,
  title: 'A lock with no expiry',
  lesson: 'exclusion alone stops the system when one holder dies',
  needs: [],
  measure() {
    const figures = noExpiryFigures();
    const { tryIt } = figures;
    return {
      figures,
      setting: `${CLIENTS} clients take a lock in turn. It belongs to whoever took it until that client gives it back.`,
      table: {
        columns: ['dies holding it', 'completed', 'wedged'],
        rows: figures.rows.map((row) => [
          row.crashAt === null ? 'nobody' : `client ${row.crashAt}`,
          row.completed,
          yesNo(row.wedged),
        ]),
      },
      finding:
        'The lock keeps its only promise and nobody works again. From outside, a holder that is dead and one that is slow ' +
        'look the same, so there is no correct test for when to take the lock away.',
      tryIt: {
        invitation: `Six clients; ${tryIt.diesAt} dies while it holds the lock.`,
        table: {
          columns: ['blocked for ever', 'owner'],
          rows: [[tryIt.blockedForever.join(' '), tryIt.ownerStill ?? 'nobody']],
        },
        finding: 'Waiting longer changes nothing: no event is left that could change the owner.',
      },
    };
  },
};
