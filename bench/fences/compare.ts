/** The same write with a fence and without. */
export interface Comparison {
  readonly plainMs: number;
  readonly fencedMs: number;
}

/** Turn by turn, so that whatever else happens on the machine hits both. */
export async function compare(
  plain: () => Promise<unknown>,
  fenced: () => Promise<unknown>,
  rounds: number,
): Promise<Comparison> {
  const times = { plain: [] as number[], fenced: [] as number[] };
  for (let round = 0; round < rounds * 1.1; round += 1) {
    const order = round % 2 === 0 ? (['plain', 'fenced'] as const) : (['fenced', 'plain'] as const);
    for (const which of order) {
      const startedAt = performance.now();
      await (which === 'plain' ? plain : fenced)();
      if (round > rounds * 0.1) times[which].push(performance.now() - startedAt);
    }
  }
  return { plainMs: median(times.plain), fencedMs: median(times.fenced) };
}

function median(timesMs: number[]): number {
  return timesMs.sort((a, b) => a - b)[Math.floor(timesMs.length / 2)] ?? Number.NaN;
}

/** Prints one line. */
export function report(what: string, { plainMs, fencedMs }: Comparison, goal?: number): void {
  const ratio = fencedMs / plainMs;
  const verdict = goal === undefined ? '' : `   goal <= ${goal}: ${ratio <= goal ? 'reached' : 'missed'}`;
  console.log(
    `${what.padEnd(34)} ${plainMs.toFixed(3)} ms without, ${fencedMs.toFixed(3)} ms with: ${ratio.toFixed(2)}${verdict}`,
  );
}
