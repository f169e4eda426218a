import { createHash, randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { type FileHandle, open, readdir, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { FenceUsageError } from '../errors.ts';

/** What becomes the content of a file. */
export type FileData =
  | string
  | Uint8Array
  | Iterable<string | Uint8Array>
  | AsyncIterable<string | Uint8Array>;

const ENDING = '.pawl-new';
/** Processes are told apart by their ids, and those mean something on their own host only. */
const HOST = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);

/** The new content of a file, complete and on the disk, but under a name of its own until it takes the file's place. */
export class Replacement {
  readonly #path: string;
  readonly #target: string;

  private constructor(path: string, target: string) {
    this.#path = path;
    this.#target = target;
  }

  /** Writes `data` beside `target` and flushes it. @throws FenceUsageError where `target` is not a file, or `data` is none. */
  static async write(target: string, data: FileData): Promise<Replacement> {
    checkData(target, data);
    const mode = await modeOf(target);
    const random = randomBytes(6).toString('hex');
    const path = join(dirname(target), `.${basename(target)}.${HOST}.${process.pid}.${random}${ENDING}`);
    // From the start with no more rights than the file has: what is written may be a secret.
    const file = await open(path, 'wx', mode);
    try {
      await fill(file, data, mode);
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
    return new Replacement(path, target);
  }

  /** Takes the file's place, for good: whoever opens the file sees the old content or the new one, whatever crashes. */
  takePlace(): void {
    renameSync(this.#path, this.#target);
    flushFolder(dirname(this.#target));
  }

  /** Removes it, unless it has taken the file's place. */
  discard(): void {
    rmSync(this.#path, { force: true });
  }
}

/** Removes what processes of this host left that were killed while they wrote `target`. */
export async function removeLeftovers(target: string): Promise<void> {
  const folder = dirname(target);
  const start = `.${basename(target)}.${HOST}.`;
  for (const name of await readdir(folder)) {
    if (!name.startsWith(start) || !name.endsWith(ENDING)) continue;
    const pid = Number(name.slice(start.length).split('.')[0]);
    if (!isAlive(pid)) await rm(join(folder, name), { force: true });
  }
}

function checkData(target: string, data: unknown): void {
  if (typeof data === 'string' || data instanceof Uint8Array) return;
  if (typeof data === 'object' && data !== null && (Symbol.iterator in data || Symbol.asyncIterator in data))
    return;
  throw new FenceUsageError(
    basename(target),
    `The content of "${basename(target)}" must be a text, bytes, or a stream of either, but was ${data === null ? 'null' : typeof data}.`,
  );
}

async function fill(file: FileHandle, data: FileData, mode: number | undefined): Promise<void> {
  try {
    await file.writeFile(data);
    if (mode !== undefined) await file.chmod(mode);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** The permissions to keep; `undefined` where there is no file yet. */
async function modeOf(target: string): Promise<number | undefined> {
  const found = await stat(target).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (found !== undefined && !found.isFile()) {
    throw new FenceUsageError(
      basename(target),
      `"${target}" is not a file, so it cannot be replaced by one.`,
    );
  }
  return found === undefined ? undefined : found.mode & 0o7777;
}

/** A new name in a folder is on the disk only once the folder is. Windows has no such call, and needs none. */
function flushFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}
