import { AT_ONCE, type AtOnce, type Result } from './result.ts';

/** One number against another of the same run. */
export interface Ratio {
  readonly what: string;
  readonly ratio: number;
  /** Absent where the ratio only informs. */
  readonly goal?: string;
  readonly reached?: boolean;
}

/** Those of which both numbers are there. */
export function ratiosOf(results: readonly Result[]): Ratio[] {
  const named = new Map(results.map((result) => [result.name, result]));
  const cycles = (own: string, peer: string, atOnce: AtOnce, least?: number): Ratio[] => {
    const [a, b] = [own, peer].map((name) => named.get(name)?.cycles[atOnce]?.perSecond);
    if (a === undefined || b === undefined) return [];
    const what = `${own} / ${peer}, cycles/s with ${atOnce} at once`;
    return [{ what, ratio: a / b, ...(least && { goal: `>= ${least}`, reached: a / b >= least }) }];
  };
  return [
    ...AT_ONCE.flatMap((atOnce) => cycles('etcd', 'etcd3', atOnce, atOnce === 64 ? 20 : undefined)),
    ...['etcd-bare', 'etcd-bare-lock'].flatMap((bare) => cycles(bare, 'etcd3', 64)),
    ...([64, 512] as const).flatMap((atOnce) => cycles('sqlite', 'set-nx-px', atOnce)),
    ...AT_ONCE.flatMap((atOnce) => cycles('sqlite', 'set-nx-px-flushed', atOnce)),
    ...handOvers(results),
  ];
}

/** Each engine against the peers on its server, and the one without a server against all. */
function handOvers(results: readonly Result[]): Ratio[] {
  const peers = results.filter(({ kind }) => kind === 'peer');
  const ratios: Ratio[] = [];
  for (const own of results.filter(({ kind }) => kind === 'engine')) {
    const everywhere = own.name === 'sqlite';
    for (const peer of peers.filter(({ server }) => everywhere || server === own.server)) {
      for (const clients of ['shared', 'each'] as const) {
        const [a, b] = [own.handOver[clients]?.p50Ms, peer.handOver[clients]?.p50Ms];
        if (a === undefined || b === undefined) continue;
        const by = clients === 'shared' ? 'one client' : 'a client each';
        const what = `${own.name} / ${peer.name}, hand-over p50, ${by}`;
        ratios.push({ what, ratio: a / b, ...(!everywhere && { goal: '< 1', reached: a < b }) });
      }
    }
  }
  return ratios;
}
