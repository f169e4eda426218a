import { LabLock } from '../lab-lock.ts';
import type { Block } from '../lesson.ts';
import { FencedResource } from '../resource.ts';

const TTL_S = 10;
const PAUSE_S = 10.1;

export function fencingFigures() {
  const rows = [false, true].map((fenced) => {
    const lock = new LabLock(TTL_S);
    const resource = new FencedResource();
    const aToken = lock.acquire('A', 0);
    const bToken = lock.acquire('B', PAUSE_S);
    const write = (who: string, value: number, token: bigint | null) =>
      fenced ? resource.writeFenced(who, value, token) : resource.write(who, value);
    const bOk = write('B', 100, bToken);
    const aOk = write('A', 200, aToken);
    return {
      resource: fenced ? 'fenced' : 'unfenced',
      aToken: Number(aToken),
      bToken: Number(bToken),
      aWrite: aOk ? 'ok' : 'REJECTED',
      bWrite: bOk ? 'ok' : 'REJECTED',
      final: resource.value,
    };
  });
  const lock = new LabLock(TTL_S);
  const resource = new FencedResource();
  const [a, b] = [lock.acquire('A', 0), lock.acquire('B', PAUSE_S)];
  const attempts: [string, bigint | null, number][] = [
    ['B', b, 100],
    ['A', a, 200],
    ['B', b, 150],
    ['C', null, 999],
  ];
  const tryIt = attempts.map(([who, token, value]) => ({
    who,
    token: token === null ? null : Number(token),
    value,
    ok: resource.writeFenced(who, value, token),
  }));
  return { rows, tryIt, tryItFinal: resource.value, tryItWriters: resource.writers };
}

export const fencingTokens: Block = {
  number: 3,
  title: 'Fencing tokens',
  lesson: 'one integer that only goes up, checked where the write lands',
  needs: [2],
  measure() {
    const figures = fencingFigures();
    return {
      figures,
      setting: `The pause of ${PAUSE_S} s again. Each grant comes with a token, higher than all before; a fenced resource refuses a lower one than it has honoured.`,
      table: {
        columns: ['resource', 'A token', 'B token', 'B write', 'A write', 'final value'],
        rows: figures.rows.map((row) => [
          row.resource,
          row.aToken,
          row.bToken,
          row.bWrite,
          row.aWrite,
          row.final ?? '',
        ]),
      },
      finding:
        'A is refused because somebody came after it, not because it was slow. The resource knows that from one number of its ' +
        'own and asks nobody, so it works while the lock service is slow, cut off or down.',
      tryIt: {
        invitation: 'Write as the current holder, as the one before, again, and with no token at all.',
        table: {
          columns: ['who', 'token', 'value', 'accepted'],
          rows: figures.tryIt.map(({ who, token, value, ok }) => [
            who,
            token ?? 'none',
            value,
            ok ? 'yes' : 'refused',
          ]),
        },
        finding: `The value ends at ${figures.tryItFinal}. One grant may write many times; whoever brings no token is refused, else the fence has a gate.`,
      },
    };
  },
};
