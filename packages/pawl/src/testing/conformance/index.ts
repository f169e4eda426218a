import type { Engine } from '../../engines/engine.ts';
import { crashChecks } from './crash-checks.ts';
import { sessionChecks } from './session-checks.ts';
import { storeChecks } from './store-checks.ts';
import type { Check, ConformanceOptions, Trial } from './subject.ts';
import { wakeChecks } from './wake-checks.ts';

export { writeWithoutEnd } from './crash-checks.ts';
export type { Check, ConformanceOptions, EngineSubject, TestRunner, WriterProcess } from './subject.ts';

/** All checks of the suite that any engine can run, by name. */
export const conformanceChecks: readonly Check[] = [...storeChecks, ...sessionChecks, ...wakeChecks];

/**
 * The suite that every engine passes: guards, lost races, versions, ranges, every kind of character, 10,000 keys, sessions
 * whose end is final, endings that are told in time, wakes that are not lost, two engines over one store, and, for engines that
 * outlive a process, processes killed during commits.
 *
 * Call it once in a test file, with the `describe` and `it` of Vitest or `node:test`.
 */
export function engineConformance(options: ConformanceOptions): void {
  options.describe(`the ${options.engine} engine keeps the contract`, () => {
    const checks = [...conformanceChecks, ...(options.survivesProcesses === true ? crashChecks : [])];
    for (const [name, check] of checks) {
      options.it(name, () => runCheck(check, options));
    }
  });
}

/** Runs one check on a store of its own, and closes whatever it opened. */
export async function runCheck(
  check: Check[1],
  options: Pick<ConformanceOptions, 'start' | 'ttlMs'>,
): Promise<void> {
  const subject = await options.start();
  const engines: Engine[] = [];
  const trial: Trial = {
    subject,
    ttlMs: options.ttlMs ?? 1000,
    open: async () => {
      const engine = await subject.openEngine();
      engines.push(engine);
      return engine;
    },
  };
  try {
    await check(trial);
  } finally {
    for (const engine of engines) await engine.close();
    await subject.stop();
  }
}
