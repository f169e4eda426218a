import { mutationOf } from './settings.js';

const tests = [
  'decisions',
  'entering',
  'leaving',
  'promises',
  'queueing',
  'records',
  'repetitions',
  'transfers',
];

// Without `model.test.ts`: it takes too long for each of a thousand mutants.
export default mutationOf(
  'core',
  tests.map((name) => `packages/pawl/test/core/${name}.test.ts`),
);
