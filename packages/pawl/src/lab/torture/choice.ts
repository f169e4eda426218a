import { isInstalled } from './packages.ts';
import { type Group, groups, type Target } from './targets.ts';

/** A target that was not measured, and why. */
export interface Unmeasured {
  readonly target: string;
  /** `skipped`: this machine has not what it needs. `failed`: it could not be measured all the same. */
  readonly kind: 'skipped' | 'failed';
  readonly why: string;
}

/** What of a group is to be tortured and can be. */
export interface Candidate {
  readonly group: Group;
  readonly targets: readonly Target[];
}

/** Sorts the named targets, or all, into those that this machine can torture and those that it cannot. */
export function choose(names: readonly string[] | undefined): {
  readonly candidates: readonly Candidate[];
  readonly skipped: readonly Unmeasured[];
} {
  const skipped: Unmeasured[] = [];
  const candidates = groups.flatMap((group): Candidate[] => {
    const named = group.targets.filter(({ name }) => names === undefined || names.includes(name));
    if (named.length === 0) return [];
    const lack = group.lack();
    const targets = named.filter(({ name, packages }) => {
      const missing = packages.filter((each) => !isInstalled(each));
      const why = [
        ...(lack === undefined ? [] : [lack]),
        ...missing.map((each) => `npm package ${each} is not installed beside pawl`),
      ];
      if (why.length > 0) skipped.push({ target: name, kind: 'skipped', why: why.join('; ') });
      return why.length === 0;
    });
    return targets.length === 0 ? [] : [{ group, targets }];
  });
  return { candidates, skipped };
}
