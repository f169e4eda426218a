import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  type SourceFile,
  wrongCore,
  wrongImports,
  wrongLockfile,
  wrongShape,
  wrongTime,
  wrongWords,
} from './tidy.ts';

const root = new URL('../', import.meta.url);
const files: SourceFile[] = execFileSync(
  'git',
  ['ls-files', '--cached', '--others', '--exclude-standard', '-z'],
  {
    cwd: root,
    encoding: 'utf8',
  },
)
  .split('\0')
  .filter((path) => path !== '' && existsSync(new URL(path, root)))
  .map((path) => ({ path, text: readFileSync(new URL(path, root), 'utf8') }));

const core = (text: string) => ({ path: 'packages/pawl/src/core/a.ts', text });

const rules: [string, (file: SourceFile) => string[], SourceFile][] = [
  ['imports point one way', wrongImports, core(`import { a } from '../node/lock-node.ts';`)],
  ['only the clock reads time', wrongTime, core('const now = Date.now();')],
  ['the core is pure', wrongCore, core(`import { readFileSync } from 'node:fs';`)],
  ['a file is one concept, named by it', wrongShape, { path: 'packages/pawl/src/node/utils.ts', text: '' }],
  ['a file stays short', wrongShape, core('\n'.repeat(400))],
  ['no word that does not belong in the tree', wrongWords, core(`// TO${'DO'}: later`)],
  [
    'the lock file has no download addresses',
    wrongLockfile,
    { path: 'package-lock.json', text: '"resolved": "https://example.org/a.tgz"' },
  ],
];

describe('the tree is tidy', () => {
  it('has files to look at', () => {
    expect(files.length).toBeGreaterThan(50);
  });

  it.each(rules)('%s', (_name, rule, bad) => {
    expect(rule(bad)).not.toEqual([]);
    expect(files.flatMap(rule)).toEqual([]);
  });
});
