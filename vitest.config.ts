import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** Inside the workspace the package is its sources. */
const conditions = ['pawl-source'];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions: [...conditions, 'module', 'node'], externalConditions: conditions } },
  test: {
    include: ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'],
    pool: 'forks',
    // Much of the time is spent waiting: for servers, for sessions to expire.
    maxWorkers: 3,
    // Hundreds of processes are started from the sources; each finds them compiled.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/compile', import.meta.url)) },
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
});
