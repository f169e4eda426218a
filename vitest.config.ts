import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** Inside the workspace the package is its sources. */
const conditions = ['pawl-source'];

/** The layers of which `npm run coverage` asks that nearly every branch is taken by their own tests. */
const PROVED = ['core', 'node', 'client', 'fences'].map((layer) => `packages/pawl/src/${layer}/**`);

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions: [...conditions, 'node'], externalConditions: conditions } },
  test: {
    include: ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'],
    pool: 'forks',
    // A process for each worker, not for each file: to load and to warm the code anew took a fifth of the run.
    isolate: false,
    // Much of the time is spent waiting: for servers, for sessions to expire.
    maxWorkers: 4,
    // Hundreds of processes are started from the sources; each finds them compiled.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/compile', import.meta.url)) },
    // Far more than any needs, since other work may take the machine.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    coverage: {
      include: PROVED.map((layer) => `${layer}/*.ts`),
      reporter: ['text', 'html', 'json-summary'],
      reportsDirectory: 'coverage/branches',
      // A test that failed for another reason does not hide what was taken.
      reportOnFailure: true,
      thresholds: Object.fromEntries(PROVED.map((layer) => [`${layer}/*.ts`, { branches: 95 }])),
    },
  },
});
