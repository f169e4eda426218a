/**
 * How the mutants of a layer are tested: each by the tests that reach it, in a copy of the tree below `coverage/`.
 *
 * @param {string} layer a folder of `packages/pawl/src`
 * @param {readonly string[]} testFiles the tests that have to notice
 */
export function mutationOf(layer, testFiles) {
  return {
    mutate: [`packages/pawl/src/${layer}/**/*.ts`],
    testFiles,
    testRunner: 'vitest',
    plugins: ['@stryker-mutator/vitest-runner'],
    // The rewriting of a tsconfig needs the API of TypeScript 6, and nothing here reads one.
    tsconfigFile: 'none',
    coverageAnalysis: 'perTest',
    // One that takes effect only when a file is loaded would need all tests anew.
    ignoreStatic: true,
    concurrency: 2,
    timeoutMS: 20_000,
    // The first run of all tests, one after the other.
    dryRunTimeoutMinutes: 20,
    tempDirName: 'coverage/mutation/sandbox',
    ignorePatterns: ['coverage', 'bench'],
    // What is known of a mutant stays until its code or its tests change.
    incremental: true,
    incrementalFile: `coverage/mutation/${layer}.json`,
    reporters: ['clear-text', 'html', 'progress-append-only'],
    clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
    htmlReporter: { fileName: `coverage/mutation/${layer}.html` },
    thresholds: { high: 95, low: 90, break: 85 },
  };
}
