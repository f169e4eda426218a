import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe } from 'vitest';
import { World } from './world.ts';

/** All tests of this folder that run in simulated time, once more: code written for `open` runs on `connect`. */

beforeAll(() => {
  World.node = 'remote';
});
afterAll(() => {
  World.node = 'local';
});

const suites = readdirSync(new URL('.', import.meta.url)).filter(
  (file) =>
    file.endsWith('.test.ts') &&
    !import.meta.url.endsWith(file) &&
    readFileSync(new URL(file, import.meta.url), 'utf8').includes("from './world.ts'"),
);

for (const suite of suites.map((file) => file.replace('.test.ts', ''))) {
  describe(`over a server: ${suite}`, async () => {
    // As a module of its own: the suite itself may have run in this process.
    await import(`./${suite}.test.ts?over-a-server`);
  });
}
