import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fileFence } from '../../src/fences/files/index.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-file-names-'));
  path = join(folder, 'app.conf');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const stale = expect.objectContaining({ code: 'PAWL_STALE_TOKEN' });

describe('the fence around a file', () => {
  it('S7: goes with the file where both are renamed', async () => {
    await fileFence(path).write(5n, 'content');
    const renamed = join(folder, 'other.conf');
    renameSync(path, renamed);
    renameSync(`${path}.pawl-fence`, `${renamed}.pawl-fence`);
    const fence = fileFence(renamed);
    expect(await fence.highest()).toBe(5n);
    await expect(fence.raise(4n)).rejects.toThrow(stale);
    await expect(fence.write(4n, 'late')).rejects.toThrow(stale);
    await expect(fileFence(renamed, { maxJump: 2n }).raise(8n)).rejects.toMatchObject({ highest: 5n });
    await fence.write(5n, 'current');
    await fence.write(6n, 'next');
    // And back.
    renameSync(`${renamed}.pawl-fence`, `${path}.pawl-fence`);
    await expect(fileFence(path).write(5n, 'late')).rejects.toThrow(stale);
    expect(readFileSync(renamed, 'utf8')).toBe('next');
  });

  it.each([
    ['absolute', () => path],
    ['relative', () => 'app.conf'],
    ['of a link', () => 'again'],
  ])('S7, S8: is one for a file that is not there yet and for a link to it (%s)', async (_what, target) => {
    const link = join(folder, 'link');
    symlinkSync('app.conf', join(folder, 'again'));
    symlinkSync(target(), link);
    await fileFence(link).raise(5n);
    await expect(fileFence(path).write(4n, 'late')).rejects.toThrow(stale);
    await fileFence(link).write(5n, 'content');
    expect(readFileSync(path, 'utf8')).toBe('content');
    expect(existsSync(`${link}.pawl-fence`)).toBe(false);
  });

  it('fails where links lead nowhere but to each other', async () => {
    symlinkSync('b', join(folder, 'a'));
    symlinkSync('a', join(folder, 'b'));
    await expect(fileFence(join(folder, 'a')).raise(1n)).rejects.toMatchObject({ code: 'ELOOP' });
  });

  it('lets nobody read new content who may not read the file, while it is written either', async () => {
    writeFileSync(path, 'secret', { mode: 0o600 });
    const modes: number[] = [];
    async function* data() {
      for (const part of ['new ', 'secret']) {
        yield part;
        const name = readdirSync(folder).find((each) => each.endsWith('.pawl-new')) ?? '';
        modes.push(statSync(join(folder, name)).mode & 0o777);
      }
    }
    await fileFence(path).write(1n, data());
    expect(modes).toEqual([0o600, 0o600]);
    expect(readFileSync(path, 'utf8')).toBe('new secret');
  });

  it.each([undefined, null, 5, true, {}])('refuses %j as its content', async (data) => {
    await expect(fileFence(path).write(1n, data as never)).rejects.toMatchObject({
      code: 'PAWL_FENCE_USAGE',
      message: expect.stringContaining('text, bytes, or a stream'),
    });
    expect(readdirSync(folder)).toEqual(['app.conf.pawl-fence']);
  });
});
