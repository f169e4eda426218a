import { StoreUnusableError } from '../errors.ts';
import { fileFence } from '../fences/files/index.ts';
import { EXIT } from './exit-codes.ts';
import type { Parsed } from './options.ts';

/** `pawl fence-write` */
export async function fenceWrite({ options, positionals }: Parsed<'fence-write'>): Promise<number> {
  const [path = ''] = positionals;
  const { token, raise } = options;
  try {
    const fence = fileFence(path);
    await (raise ? fence.raise(token) : fence.write(token, process.stdin));
    return EXIT.ok;
  } catch (error) {
    throw isOfSystem(error) ? new StoreUnusableError(`"${path}"`, error.message, { cause: error }) : error;
  }
}

/** What the file system or SQLite said: something is wrong with the file or its folder, not with this program. */
function isOfSystem(error: unknown): error is Error {
  return error instanceof Error && ('syscall' in error || 'errcode' in error);
}
