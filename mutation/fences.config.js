import { mutationOf } from './settings.js';

const tests = [
  'both-fences',
  'conditional',
  'fence',
  'fence-errors',
  'file-names',
  'files',
  'gate',
  'http',
  'http-answered',
  'left-alone',
  'mysql',
  'node-http',
  'once-effects',
  'once-stores',
  'postgres-audit',
  'postgres-builders',
  'postgres-fence',
  'postgres-guard',
  'redis',
  'refused-settings',
  'rules',
  'sequencer',
  'sequencer-fields',
  'sqlite',
  'sqlite-guard',
  'update-if-unchanged',
];

const { mutate, ...settings } = mutationOf(
  'fences',
  tests.map((name) => `packages/pawl/test/fences/${name}.test.ts`),
);

// The stores that DynamoDB and S3 are tested on take too long to start for every mutant, and the test of `once` in Postgres
// is against real time, which runs differently under a mutation.
const without = ['aws-failure.ts', 'dynamodb/**', 's3/**', 'once/postgres-store.ts'];

export default {
  ...settings,
  mutate: [...mutate, ...without.map((path) => `!packages/pawl/src/fences/${path}`)],
};
