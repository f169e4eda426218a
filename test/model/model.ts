/** Searches the model of the lock exhaustively, by Spin: `npm run model`. */
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MODEL = fileURLToPath(new URL('../../docs/model/lock.pml', import.meta.url));

export interface Variant {
  readonly title: string;
  readonly defines: readonly string[];
  /** The assertion that must turn out to be violated, or `null` where none may be. */
  readonly violates: string | null;
  /** Takes longer than all others together, so the test run leaves it to `npm run model`. */
  readonly long?: boolean;
}

export const VARIANTS: readonly Variant[] = [
  {
    title: '2 clients, 2 acquires each, fence and raise',
    defines: ['FENCE', 'RAISE', 'CLIENTS=2', 'ROUNDS=2'],
    violates: null,
    long: true,
  },
  {
    title: '3 clients, 1 acquire each, fence and raise',
    defines: ['FENCE', 'RAISE', 'CLIENTS=3', 'ROUNDS=1'],
    violates: null,
  },
  {
    title: '2 clients, the fence is not raised before the read',
    defines: ['FENCE', 'CLIENTS=2', 'ROUNDS=1'],
    violates: 'value==seen',
  },
  {
    title: '2 clients, no fence',
    defines: ['CLIENTS=2', 'ROUNDS=1'],
    violates: 'value==seen',
  },
  {
    title: '2 clients, the service forgets requests once they are released',
    defines: ['FENCE', 'RAISE', 'FORGET', 'CLIENTS=2', 'ROUNDS=1'],
    violates: 'grants[q]==0',
  },
];

export interface Search {
  /** The assertion that was violated, or `null`. */
  readonly violated: string | null;
  readonly states: number;
  /** Whether every state was visited. */
  readonly complete: boolean;
  /** What led to the violation, step by step. */
  readonly trail: string;
}

/** Has all states of a variant of the model visited. */
export function search({ defines, violates }: Variant): Search {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-model-'));
  try {
    copyFileSync(MODEL, join(folder, 'lock.pml'));
    const flags = defines.map((define) => `-D${define}`);
    const options = { cwd: folder, encoding: 'utf8' as const };
    execFileSync('spin', ['-a', ...flags, 'lock.pml'], options);
    // Assertions and dead ends are looked for, not cycles; 2 GB of memory at most.
    const compile = [
      '-w',
      violates === null ? '-O1' : '-O0',
      '-DSAFETY',
      '-DCOLLAPSE',
      '-DMEMLIM=2000',
      '-DVECTORSZ=2048',
      '-o',
      'pan',
      'pan.c',
    ];
    execFileSync('gcc', compile, options);
    const { stdout } = spawnSync('./pan', ['-m100000'], options);
    const violated = /assertion violated \(+(.*?)\)+ \(at depth/.exec(stdout)?.[1] ?? null;
    const invalid = stdout.includes('invalid end state (at depth');
    const trail =
      violated === null ? '' : spawnSync('spin', ['-t', '-p', '-g', ...flags, 'lock.pml'], options).stdout;
    return {
      violated: invalid ? 'a dead end' : violated,
      states: Number(/([\d.e+]+) states, stored/.exec(stdout)?.[1] ?? 0),
      complete: !stdout.includes('max search depth too small') && !stdout.includes('out of memory'),
      trail,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  let wrong = 0;
  for (const variant of VARIANTS) {
    const { violated, states, complete, trail } = search(variant);
    const asExpected = violated === variant.violates && complete;
    if (!asExpected) wrong += 1;
    const found = violated === null ? 'no promise is broken' : `assert(${violated}) is violated`;
    console.log(
      `${variant.title}: ${found}; ${states} states${complete ? '' : ', not all'}${asExpected ? '' : '  UNEXPECTED'}`,
    );
    if (process.argv.includes('--trails') && trail !== '') console.log(trail);
  }
  process.exit(wrong === 0 ? 0 : 1);
}
