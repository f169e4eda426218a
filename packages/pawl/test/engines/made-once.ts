import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const CACHE = fileURLToPath(new URL('../../../../node_modules/.cache/servers/', import.meta.url));

/**
 * Makes the folder of a new, empty server: the first time by its own program, which takes seconds of the processor, and later as a copy of that.
 * Several processes may do so at once.
 *
 * @param version of the server and of how it is made; another one gets a copy of its own.
 * @param make makes `folder`.
 */
export function madeOnce(version: string, folder: string, make: () => void): void {
  const kept = `${CACHE}${version.replaceAll(/[^\w.-]+/g, '_')}`;
  if (existsSync(kept)) {
    copy(kept, folder);
    return;
  }
  make();
  mkdirSync(CACHE, { recursive: true });
  const mine = `${kept}.${process.pid}`;
  copy(folder, mine);
  try {
    renameSync(mine, kept);
  } catch {
    // Another was first.
    rmSync(mine, { recursive: true, force: true });
  }
}

/** With its owner, who is that of the server. */
function copy(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to], { stdio: 'ignore' });
}
