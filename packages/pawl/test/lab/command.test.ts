import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { blocks, withPrerequisites } from '../../src/lab/blocks/index.ts';
import { type LabOptions, labCommand } from '../../src/lab/command.ts';

async function lab(options: Partial<LabOptions> = {}, input = '') {
  let text = '';
  const stdout = new Writable({
    write(chunk, _encoding, done) {
      text += chunk;
      done();
    },
  });
  const all = { quiet: false, verify: false, json: false, list: false, predict: false, ...options };
  const code = await labCommand(all, { stdin: Readable.from([input]), stdout });
  return { code, text };
}

it('tells all blocks in order, then the assembly, the same each time', async () => {
  const { code, text } = await lab();
  const titles = [...text.matchAll(/^Block (\d+): /gm)].map((match) => Number(match[1]));
  expect(titles).toEqual(Array.from({ length: 16 }, (_, i) => i + 1));
  expect(text.indexOf('\nThe assembly\n')).toBeGreaterThan(text.indexOf('\nBlock 16'));
  expect(code).toBe(0);
  expect((await lab()).text).toBe(text);
});

it('shows a block with those it builds on', async () => {
  expect(withPrerequisites(4).map((block) => block.number)).toEqual([1, 2, 3, 4]);
  const { text } = await lab({ block: 4 });
  expect([...text.matchAll(/^Block (\d+)/gm)].map((match) => match[1])).toEqual(['1', '2', '3', '4']);
  expect(text).not.toMatch(/^The assembly$/m);
  await expect(lab({ block: 17 })).rejects.toThrow(
    expect.objectContaining({ code: 'PAWL_INVALID_ARGUMENT' }),
  );
  await expect(lab({ block: 0 })).rejects.toThrow(expect.objectContaining({ code: 'PAWL_INVALID_ARGUMENT' }));
});

it('shows the assembly alone, the list, and all of it as data', async () => {
  expect((await lab({ quiet: true })).text).toMatch(/^The assembly/);
  expect((await lab({ list: true })).text.trimEnd().split('\n')).toHaveLength(16);
  const data = JSON.parse((await lab({ json: true })).text);
  expect(data.blocks).toHaveLength(16);
  expect(data.assembly.figures.rows[1]).toMatchObject({ design: 'lease only', lost: 641 });
  expect(JSON.parse((await lab({ list: true, json: true })).text)).toHaveLength(16);
});

it('derives the claims anew and says how many hold', async () => {
  const { code, text } = await lab({ verify: true });
  expect(text).toMatch(/21 of 21 claims hold/);
  expect(code).toBe(0);
  expect(JSON.parse((await lab({ verify: true, json: true })).text)).toHaveLength(21);
});

it('asks first, and shows what was answered beside what was measured', async () => {
  const { text } = await lab({ predict: true }, 'all ten\n100\nB\nyes\n5% and 5%\n2%\n');
  for (const [said, measured] of [
    ['all ten', '3'],
    ['100', "200: A's, the older one"],
    ['B', "100: B's"],
    ['yes', 'safe if the pause comes before the check'],
    ['5% and 5%', '1.2% and 72.5%'],
    ['2%', '16.53%'],
  ]) {
    expect(text).toMatch(
      new RegExp(`you said   ${said}\\n    measured   ${measured?.replace(/[.]/g, '\\.')}`),
    );
  }
  expect((await lab({ predict: true, block: 1 }, '')).text).toContain('(nothing)');
});

it('writes the curves as SVG for light and dark', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-plot-'));
  try {
    const { text } = await lab({ plot: join(folder, 'new') });
    expect(text.trimEnd().split('\n')).toHaveLength(3);
    for (const name of readdirSync(join(folder, 'new'))) {
      const svg = readFileSync(join(folder, 'new', name), 'utf8');
      expect(svg).toContain('prefers-color-scheme: dark');
      expect(svg).not.toMatch(/NaN|Infinity|undefined/);
      expect(svg.match(/<polyline/g)).toHaveLength(2);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it('touches no file but the programs it is made of', () => {
  const bin = fileURLToPath(new URL('../../bin/pawl.js', import.meta.url));
  // Node refuses writes, other processes and add-ons here, and every file outside the workspace.
  const root = fileURLToPath(new URL('../../../../', import.meta.url));
  const guarded = ['--permission', `--allow-fs-read=${root}*`];
  for (const options of [[], ['--verify'], ['--json'], ['--list'], ['--quiet']]) {
    const text = execFileSync(process.execPath, [...guarded, bin, 'lab', ...options], { encoding: 'utf8' });
    expect(text.length).toBeGreaterThan(100);
  }
});

it('has a page for each block', () => {
  const pages = readdirSync(new URL('../../../../docs/lab/', import.meta.url));
  for (const { number } of blocks) {
    expect(pages.some((page) => page.startsWith(String(number).padStart(2, '0')))).toBe(true);
  }
});
