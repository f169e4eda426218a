import { equal, ok } from 'node:assert/strict';
import type { Engine } from '../../engines/engine.ts';
import { type Check, mustCommit, put, until, type WriterProcess } from './subject.ts';

/** How long a writer may take to say something on a loaded machine, in ms. */
const LIMIT_MS = 20_000;
const ROUNDS = 3;
const WRITERS = 8;

/**
 * What the process of {@link EngineSubject.startWriter} has to run: writes new keys, several side by side, and says each with its version
 * once it is acknowledged. Never ends.
 *
 * @param say prints a line at once: it must have left the process when it returns.
 */
export async function writeWithoutEnd(
  engine: Engine,
  prefix: string,
  say: (line: string) => void,
): Promise<void> {
  const work = async (writer: number) => {
    for (let i = 0; ; i += 1) {
      const key = `${prefix}/${writer}/${i}`;
      say(`${key} ${await mustCommit(engine, put(key, `value of ${key}`))}`);
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, (_, writer) => work(writer)));
}

/** For engines that outlive a process. */
export const crashChecks: readonly Check[] = [
  [
    'S1, S9: a process killed during commits: what it was told is still there, and no version falls or repeats',
    async (trial) => {
      const { startWriter } = trial.subject;
      if (startWriter === undefined) throw new Error('The subject of this suite has no startWriter.');
      const versions = new Set<bigint>();
      let highest = 0n;
      for (let round = 0; round < ROUNDS; round += 1) {
        const writer = await startWriter(`round-${round}`);
        await until(
          trial,
          LIMIT_MS,
          'The first acknowledgements',
          () => acknowledged(writer).length >= 20 * (round + 1),
        );
        await writer.kill();
        const engine = await trial.open();
        const before = highest;
        for (const { key, version } of acknowledged(writer)) {
          ok(version > before, `version ${version} came after ${before}`);
          ok(!versions.has(version), `version ${version} came twice`);
          versions.add(version);
          highest = version > highest ? version : highest;
          const entry = (await engine.read({ keys: [key], ranges: [] })).entries.get(key);
          equal(entry?.value, `value of ${key}`);
          equal(entry?.version, version);
        }
        const next = await mustCommit(engine, put(`after-${round}`, 'x'));
        ok(next > highest, `version ${next} came after ${highest}`);
        highest = next;
      }
    },
  ],
];

function acknowledged(writer: WriterProcess): { key: string; version: bigint }[] {
  const lines = writer.said().split('\n').slice(0, -1);
  return lines.map((line) => {
    const [key = '', version = '0'] = line.split(' ');
    return { key, version: BigInt(version) };
  });
}
