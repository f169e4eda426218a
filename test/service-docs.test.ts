import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memoryEngine } from '../packages/pawl/src/engines/memory/index.ts';
import { type PawlServer, serve } from '../packages/pawl/src/server/index.ts';
import { installPackage, works } from '../packages/pawl/test/engines/server-tools.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../', import.meta.url));
const page = readFileSync(join(root, 'docs/service.md'), 'utf8');

describe('docs/service.md', () => {
  const engine = memoryEngine();
  let server: PawlServer;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(root, 'test', '.snippets-'));
    server = await serve({ engine, port: 0 });
  });
  afterAll(async () => {
    await server.close();
    await engine.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function snippet(language: string): string {
    const [, text] = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'ms').exec(page) ?? [];
    if (text === undefined) throw new Error(`docs/service.md has no program in ${language}.`);
    return text;
  }

  async function play(command: string, args: readonly string[]): Promise<string> {
    const env = { ...process.env, PAWL_SERVER: server.url };
    return (await run(command, [...args], { cwd: folder, env })).stdout;
  }

  it.skipIf(!have('curl'))('the life of a lock with curl', async () => {
    const said = await play('sh', ['-ec', snippet('bash')]);
    expect(said).toMatch(/^granted with token \d+\n\{"alive":true\}/);
    expect(said).toContain('{"released":true}');
    expect(said).toMatch(/\{"closed":true\}\s*$/);
  });

  it.skipIf(!have('python3'))('the Python program', async () => {
    const text = snippet('python');
    expect(text.split('\n').filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(40);
    writeFileSync(join(folder, 'program.py'), text);
    expect(await play('python3', ['program.py'])).toMatch(/^token \d+ held True\n$/);
  });

  it('the TypeScript program', async () => {
    writeFileSync(join(folder, 'program.ts'), snippet('typescript'));
    const said = await play(process.execPath, ['--conditions=pawl-source', 'program.ts']);
    expect(said).toMatch(/^token \d+\n$/);
  });
});

function have(program: string): boolean {
  if (works(program, ['--version'])) return true;
  installPackage(program);
  return works(program, ['--version']);
}
