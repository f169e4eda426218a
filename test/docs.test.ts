import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../', import.meta.url));
const pages = ['README.md', 'CONTRIBUTING.md', ...pagesUnder('docs')];

/** What another part of the test run does anyway, or what would start the test run again. */
const RUN_ELSEWHERE =
  /^(npm ci|npm test|npm run (format|bench|demo|sim|model|torture|coverage|mutation)|npm start)\b/;

let folder: string;
beforeAll(() => {
  // Inside the workspace, so that `import … from 'pawl'` finds the package.
  folder = mkdtempSync(join(root, 'test', '.snippets-'));
  writeFileSync(join(folder, 'deploy.sh'), '#!/bin/sh\necho "deploying $PAWL_LOCK with token $PAWL_TOKEN"\n');
  chmodSync(join(folder, 'deploy.sh'), 0o755);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the documents tell the truth', () => {
  it.each(snippets('ts'))(
    '%s, program %i runs',
    async (page, number, program) => {
      const file = join(folder, `${page.replaceAll(/\W/g, '-')}-${number}.ts`);
      writeFileSync(file, program);
      await run(process.execPath, ['--conditions=pawl-source', file], { cwd: folder, env: environment() });
    },
    60_000,
  );

  it.each(snippets('sh'))(
    '%s, commands %i run',
    async (_page, _number, text) => {
      for (const line of text.split('\n')) {
        if (line.trim() === '' || line.startsWith('#') || RUN_ELSEWHERE.test(line)) continue;
        // npx would find the same command on the path, only more slowly; that it does has a test of its own.
        const command = line.replace(/^npx /, '');
        await run('sh', ['-c', command], { cwd: folder, env: environment() }).catch((error) => {
          // The one example that needs a holder, which no document can name.
          if (!command.startsWith('pawl break') || !String(error).includes('nobody holds it')) throw error;
        });
      }
    },
    60_000,
  );

  it('npx finds the command', async () => {
    const { stdout } = await run('npx', ['pawl', 'version'], { cwd: root, env: environment() });
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  }, 60_000);

  it('docs/errors.md lists every code that the sources have, and no other', () => {
    const sources = readdirSync(join(root, 'packages/pawl/src'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => readFileSync(join(root, 'packages/pawl/src', path), 'utf8'));
    const codes = sources.flatMap((text) =>
      [...text.matchAll(/\bcode = '(PAWL_\w+)'/g)].map((match) => match[1]),
    );
    const listed = [...readFileSync(join(root, 'docs/errors.md'), 'utf8').matchAll(/^\| `(PAWL_\w+)`/gm)];
    expect(listed.map((match) => match[1]).sort()).toEqual([...new Set(codes)].sort());
  });

  it('every link to a file leads somewhere', () => {
    const broken = pages.flatMap((page) =>
      [...readFileSync(join(root, page), 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g)]
        .map((match) => match[1] ?? '')
        .filter((target) => !exists(join(root, page, '..', target)))
        .map((target) => `${page}: ${target}`),
    );
    expect(broken).toEqual([]);
  });
});

function environment(): NodeJS.ProcessEnv {
  const path = [join(root, 'node_modules/.bin'), process.env.PATH].join(delimiter);
  return { ...process.env, PATH: path, PAWL_DB: join(folder, 'locks.db') };
}

function snippets(language: string): [page: string, number: number, text: string][] {
  const fence = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms');
  return pages.flatMap((page) =>
    [...readFileSync(join(root, page), 'utf8').matchAll(fence)].map((match, i): [string, number, string] => [
      page,
      i + 1,
      match[1] ?? '',
    ]),
  );
}

function pagesUnder(directory: string): string[] {
  return readdirSync(join(root, directory), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => join(directory, path));
}

function exists(path: string): boolean {
  try {
    readFileSync(path);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EISDIR';
  }
}
