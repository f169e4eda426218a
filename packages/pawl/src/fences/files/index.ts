import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { Token } from '../../token.ts';
import { type Bearer, type BearerRules, checkRules, claimOf } from '../bearer.ts';
import { FenceUsageError, StaleTokenError } from '../errors.ts';
import { type FileData, Replacement, removeLeftovers } from './replacement.ts';
import { StateFile } from './state.ts';

export type { FileData } from './replacement.ts';

export interface FileFenceOptions extends BearerRules {
  /**
   * How long to wait for other processes that write at this moment, in ms; 5,000 unless set. They are quick, since data is written
   * before, but the wait blocks this thread.
   */
  readonly busyMs?: number | undefined;
}

/** A fence around the content of one file. */
export interface FileFence {
  /**
   * Honours the token, so that older holders are refused from now on: call it before reading the file (S8). It is on the disk when
   * this resolves.
   *
   * @throws StaleTokenError, MissingTokenError, InvalidTokenError, FenceBusyError; by its rules InvalidSequencerError, TokenJumpError
   */
  raise(bearer: Bearer): Promise<void>;
  /**
   * Replaces the content of the file. Who reads it meanwhile sees the old or the new content, never a part.
   *
   * @param data text (UTF-8), bytes, or a stream of either, which is read to its end before the token is checked for good.
   * @throws as {@link raise}; FenceUsageError where the path is not that of a file; the errors of the file system as they are.
   */
  write(bearer: Bearer, data: FileData): Promise<void>;
  /** The highest token honoured so far. */
  highest(): Promise<Token | undefined>;
}

/**
 * A fence for one file, for any number of processes of one machine. Its state is a small SQLite database beside the file,
 * `<file>.pawl-fence`: whoever removes that opens the fence to every token. A link is followed; permissions are kept.
 *
 * The token is raised and flushed first, then the file is renamed into place, both while the state is locked. A crash in between
 * leaves the old content and a higher token, which is safe. Locks of the kernel end with their process, so nothing is left locked.
 *
 * @throws FenceUsageError
 */
export function fileFence(path: string, options: FileFenceOptions = {}): FileFence {
  const { busyMs = 5000, ...rules } = options;
  if (typeof path !== 'string' || path === '' || path.includes('\0')) {
    throw new FenceUsageError(String(path), 'A file fence needs the path of a file.');
  }
  if (!Number.isSafeInteger(busyMs) || busyMs < 0 || busyMs > 2 ** 31 - 1) {
    throw new FenceUsageError(path, `busyMs must be a whole number of ms from 0, but was ${busyMs}.`);
  }
  checkRules(rules);
  const absolute = resolve(path);

  const at = () => {
    const target = targetOf(absolute);
    const resource = basename(target);
    return { target, resource, state: new StateFile(`${target}.pawl-fence`, resource, busyMs, rules) };
  };

  /** @returns whether the token is a new one here. */
  const raised = (state: StateFile, bearer: Bearer): boolean =>
    state.locked((locked) => {
      const before = locked.highest();
      locked.raise(bearer);
      return before !== locked.highest();
    });

  const raise = async (bearer: Bearer): Promise<void> => {
    const { resource, state } = at();
    claimOf(resource, bearer, rules);
    raised(state, bearer);
  };

  const write = async (bearer: Bearer, data: FileData): Promise<void> => {
    const { target, resource, state } = at();
    const { token } = claimOf(resource, bearer, rules);
    // Who was killed in the middle of a write had a lower token.
    if (raised(state, bearer)) await removeLeftovers(target);
    const replacement = await Replacement.write(target, data);
    try {
      state.locked((locked) => {
        const highest = locked.highest();
        // What was raised before may only be found again: it was flushed, and this step flushes nothing before the rename.
        if (highest === undefined || highest < token) throw stateWasLost(resource);
        if (highest > token) throw new StaleTokenError(resource, token, highest);
        replacement.takePlace();
      });
    } catch (error) {
      replacement.discard();
      throw error;
    }
  };

  const highest = async (): Promise<Token | undefined> => at().state.highest();

  return { raise, write, highest };
}

function stateWasLost(resource: string): FenceUsageError {
  return new FenceUsageError(
    resource,
    `The state of the fence of "${resource}" was removed or put back while it was written; nothing was written. Write again.`,
  );
}

/** Where the file itself is, also where there is none yet: two paths to one file have one fence. */
function targetOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    const there = join(realpathSync(dirname(path)), basename(path));
    const isLink = lstatSync(there, { throwIfNoEntry: false })?.isSymbolicLink() === true;
    return isLink ? targetOf(resolve(dirname(there), readlinkSync(there))) : there;
  }
}
