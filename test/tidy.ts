/** The rules of the tree: what may stand where. Each takes one file and says what is wrong with it. */

export interface SourceFile {
  /** Relative to the root, with `/`. */
  readonly path: string;
  readonly text: string;
}

const SRC = 'packages/pawl/src/';

/** What each layer may import besides itself. `engines` as a file means the contract, not an engine. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  token: [],
  errors: [],
  core: ['token', 'errors'],
  clock: [],
  'transient-map': [],
  engines: ['core', 'clock', 'transient-map', 'token', 'errors'],
  node: ['core', 'clock', 'transient-map', 'engines', 'token', 'errors'],
  protocol: ['core', 'clock', 'engines', 'node', 'token', 'errors'],
  client: ['core', 'clock', 'transient-map', 'engines', 'node', 'protocol', 'token', 'errors'],
  server: ['core', 'clock', 'transient-map', 'engines', 'node', 'protocol', 'token', 'errors'],
  fences: ['token'],
  testing: ['core', 'clock', 'engines', 'token', 'errors'],
  lab: ['core', 'clock', 'engines', 'node', 'client', 'fences', 'testing', 'token', 'errors'],
  cli: ['core', 'clock', 'engines', 'node', 'client', 'server', 'fences', 'lab', 'token', 'errors', 'index'],
  index: ['core', 'clock', 'engines', 'node', 'client', 'token', 'errors'],
};

/** Imports point one way. */
export function wrongImports({ path, text }: SourceFile): string[] {
  if (!path.startsWith(SRC)) return [];
  const layer = layerOf(path);
  const allowed = MAY_IMPORT[layer];
  if (allowed === undefined) return [`${path}: "${layer}" is no layer`];
  const wrong = [];
  for (const [, specifier = ''] of text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'(\.[^']*)'/g)) {
    const target = layerOf(new URL(specifier, `file:///${path}`).pathname.slice(1));
    if (target !== layer && !allowed.includes(target))
      wrong.push(`${path}: ${layer} may not import ${target}`);
  }
  return wrong;
}

/** Only the clock reads time or sets timers; the lab may measure its own run. */
export function wrongTime({ path, text }: SourceFile): string[] {
  if (!path.startsWith(SRC) || path === `${SRC}clock.ts` || path.startsWith(`${SRC}lab/`)) return [];
  const uses =
    /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|(?<![.\w])set(?:Timeout|Interval|Immediate)\(|\bprocess\.(?:hrtime|uptime)\b|node:timers/g;
  return [...text.matchAll(uses)].map(([use]) => `${path}: uses ${use} instead of the clock it was given`);
}

/** The core is pure. */
export function wrongCore({ path, text }: SourceFile): string[] {
  if (!path.startsWith(`${SRC}core/`)) return [];
  return [...text.matchAll(/'node:[^']*'|\bMath\.random\b|\bcrypto\b|\bprocess\./g)].map(
    ([use]) => `${path}: the core may not use ${use}`,
  );
}

/** A file is one concept, and its name says which. */
export function wrongShape({ path, text }: SourceFile): string[] {
  if (!/\.(ts|js)$/.test(path)) return [];
  const wrong = [];
  const lines = text.split('\n').length - 1;
  if (lines > 350) wrong.push(`${path}: has ${lines} lines, more than 350`);
  if (/(^|\/)(utils?|common|misc|helpers?)(\/|\.)/.test(path)) wrong.push(`${path}: the name says nothing`);
  return wrong;
}

// Written in parts, so that these lines do not break their own rule.
const FORBIDDEN = [
  `/wo${'rk/'}`,
  `/ro${'ot/'}`,
  `/home${'/'}`,
  `npm${'js'}`,
  `TO${'DO'}`,
  `FIX${'ME'}`,
  `@ts-${'ignore'}`,
  `biome-${'ignore'}`,
];

/** No path of one machine, no package registry, nothing left to do, no check switched off. */
export function wrongWords({ path, text }: SourceFile): string[] {
  return FORBIDDEN.filter((word) => text.includes(word)).map((word) => `${path}: contains ${word}`);
}

/** A lock file without download addresses: every registry serves the same packages. */
export function wrongLockfile({ path, text }: SourceFile): string[] {
  if (!path.endsWith('package-lock.json')) return [];
  return /"resolved": *"https?:/.test(text) ? [`${path}: has download addresses`] : [];
}

function layerOf(path: string): string {
  return path.slice(SRC.length).split(/[/.]/)[0] ?? '';
}
