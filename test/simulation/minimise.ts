import { FAULT_KINDS, type FaultKind } from './fault-kinds.ts';
import { type RunResult, simulate } from './simulation.ts';

/** A run that breaks a promise with as little as possible. */
export interface Minimised {
  readonly faults: readonly FaultKind[];
  readonly result: RunResult;
}

/** Leaves out one kind of fault after the other, for as long as the promise is still broken. */
export async function minimise(seed: number, steps: number): Promise<Minimised> {
  let faults: readonly FaultKind[] = FAULT_KINDS;
  let result = await simulate({ seed, steps });
  for (const kind of FAULT_KINDS) {
    const fewer = faults.filter((each) => each !== kind);
    const attempt = await simulate({ seed, steps: Math.min(steps, result.step), faults: new Set(fewer) });
    if (attempt.violation === undefined) continue;
    faults = fewer;
    result = attempt;
  }
  return { faults, result };
}
