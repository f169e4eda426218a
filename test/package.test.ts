import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** The package as users get it: built, with nothing of the workspace around it. */

const root = fileURLToPath(new URL('../', import.meta.url));
const source = join(root, 'packages/pawl');
const tsc = join(root, 'node_modules/.bin/tsc');
let folder: string;

const run = (command: string, args: readonly string[]) =>
  execFileSync(command, args, { cwd: folder, encoding: 'utf8' });

beforeAll(() => {
  // Inside the workspace only for the types of Node.
  folder = mkdtempSync(join(root, 'test', '.snippets-package-'));
  const installed = join(folder, 'node_modules/pawl');
  mkdirSync(installed, { recursive: true });
  execFileSync(tsc, ['-p', join(source, 'tsconfig.build.json'), '--outDir', join(installed, 'dist')]);
  for (const part of ['package.json', 'bin'])
    cpSync(join(source, part), join(installed, part), { recursive: true });
  writeFileSync(
    join(folder, 'use.ts'),
    `import { open, isPawlError, type Lease } from 'pawl';
import { memoryEngine } from 'pawl/engines/memory';
import { sqliteEngine } from 'pawl/engines/sqlite';
import { Fence } from 'pawl/fences';
import { updateIfUnchanged } from 'pawl/fences/conditional';
import { dynamodbFence } from 'pawl/fences/dynamodb';
import { fileFence } from 'pawl/fences/files';
import { expressFence, fastifyFence, fencedFetch, honoFence, nodeFence } from 'pawl/fences/http';
import { once } from 'pawl/fences/once';
import { redisFence } from 'pawl/fences/redis';
import { s3Fence } from 'pawl/fences/s3';
import { signSequencer } from 'pawl/fences/sequencer';
import { sqliteFence } from 'pawl/fences/sqlite';
import { SimulatedClock, engineConformance } from 'pawl/testing';
import { verify } from 'pawl/lab';

const engine = memoryEngine();
const pawl = open(engine);
const lease: Lease = await pawl.acquire('x');
new Fence('x').raise(lease);
await lease.release();
await pawl.close();
console.log(typeof sqliteEngine, typeof sqliteFence, typeof SimulatedClock, typeof engineConformance, verify().length);
console.log(isPawlError(new Error()));
for (const fence of [updateIfUnchanged, dynamodbFence, fileFence, once, redisFence, s3Fence, signSequencer]) if (typeof fence !== 'function') throw fence;
for (const fence of [expressFence, fastifyFence, fencedFetch, honoFence, nodeFence]) if (typeof fence !== 'function') throw fence;
`,
  );
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the package', () => {
  it.each([
    ['node16', 'node16'],
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ])(
    'compiles for a user with module %s and resolution %s, and checks its own types',
    (module, resolution) => {
      const options = ['--module', module, '--moduleResolution', resolution, '--target', 'es2024'];
      const libraries = [
        '--lib',
        'es2024,esnext.disposable',
        '--types',
        'node',
        '--strict',
        '--ignoreConfig',
      ];
      run(tsc, [...options, ...libraries, '--noEmit', 'use.ts']);
    },
  );

  it('runs by import and by require, and both give the same classes', () => {
    const options = ['--module', 'nodenext', '--target', 'es2024', '--lib', 'es2024,esnext.disposable'];
    run(tsc, [...options, '--types', 'node', '--skipLibCheck', '--ignoreConfig', 'use.ts']);
    expect(run(process.execPath, ['use.js'])).toBe('function function function function 21\nfalse\n');
    writeFileSync(
      join(folder, 'both.cjs'),
      `const { LeaseLostError } = require('pawl');
import('pawl').then((pawl) => console.log(pawl.LeaseLostError === LeaseLostError));`,
    );
    expect(run(process.execPath, ['both.cjs'])).toBe('true\n');
  });

  it('has the command', () => {
    expect(run(process.execPath, ['node_modules/pawl/bin/pawl.js', 'version'])).toBe('0.1.0\n');
    expect(run(process.execPath, ['node_modules/pawl/bin/pawl.js', 'lab', '--verify'])).toMatch(/21 of 21/);
  });
});
