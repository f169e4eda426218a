import { MemoryStore } from '../../engines/memory/store.ts';
import type { Token } from '../../token.ts';
import { LabLock } from '../lab-lock.ts';
import type { Block } from '../lesson.ts';
import { FencedResource } from '../resource.ts';

const TTL_S = 10;
const GRANTS_BEFORE = 5;

/** Deliberately wrong: a service that counts in memory, and so begins anew after a restart. */
class ForgetfulLock {
  #last = 0n;

  grant(): Token {
    this.#last += 1n;
    return this.#last;
  }
}

function afterRestart(zombie: Token, next: Token) {
  const resource = new FencedResource();
  resource.writeFenced('A', 1, zombie);
  const nextAccepted = resource.writeFenced('B', 2, next);
  const zombieAccepted = resource.writeFenced('A', 3, zombie);
  return { zombie: Number(zombie), next: Number(next), nextAccepted, zombieAccepted };
}

export function tokenReuseFigures() {
  const forgetful = new ForgetfulLock();
  let zombie = 0n;
  for (let i = 0; i < GRANTS_BEFORE; i += 1) zombie = forgetful.grant();
  const restarted = new ForgetfulLock();

  const store = new MemoryStore();
  let kept = 0n;
  const before = new LabLock(TTL_S, store);
  for (let i = 0; i < GRANTS_BEFORE; i += 1) kept = before.acquire(`A${i}`, i * TTL_S) ?? 0n;
  const after = new LabLock(TTL_S, store);
  return {
    rows: [
      { counter: 'in memory', ...afterRestart(zombie, restarted.grant()) },
      {
        counter: 'as durable as the lock',
        ...afterRestart(kept, after.acquire('B', GRANTS_BEFORE * TTL_S) ?? 0n),
      },
    ],
  };
}

export const tokenReuse: Block = {
  number: 11,
  title: 'Token reuse after a restart',
  lesson: 'a counter that forgets hands authority to the zombie',
  needs: [3],
  measure() {
    const figures = tokenReuseFigures();
    const word = (accepted: boolean) => (accepted ? 'accepted' : 'refused');
    return {
      figures,
      setting: `${GRANTS_BEFORE} grants, then the lock service restarts. The last holder is still about; a new one is granted.`,
      table: {
        columns: ['the counter is kept', 'old token', 'new token', 'new holder', 'old holder'],
        rows: figures.rows.map((row) => [
          row.counter,
          row.zombie,
          row.next,
          word(row.nextAccepted),
          word(row.zombieAccepted),
        ]),
      },
      finding:
        'The mechanism is turned round: the fence now protects the zombie from the holder. The number has to live exactly as long as the lock’s grants do.',
      tryIt: {
        invitation: 'Ask Pawl the same: its token is the version of the commit that made the grant.',
        table: {
          columns: ['grants before', 'first token after'],
          rows: [[GRANTS_BEFORE, figures.rows[1]?.next ?? '']],
        },
        finding:
          'A number that the store needs anyway cannot be forgotten apart from it. For a restored backup there is one floor to raise, for all locks at once.',
      },
    };
  },
};
