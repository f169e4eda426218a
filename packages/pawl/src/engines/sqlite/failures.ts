import {
  EngineUnavailableError,
  type ErrorOutcome,
  isPawlError,
  StoreCorruptError,
  StoreUnusableError,
} from '../../errors.ts';

/** SQLite's primary result codes that mean something to us, https://sqlite.org/rescode.html */
const SQLITE_ERROR = 1;
const SQLITE_PERM = 3;
const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
const SQLITE_READONLY = 8;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_AUTH = 23;
const SQLITE_NOTADB = 26;

const UNUSABLE = new Set([SQLITE_PERM, SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_AUTH]);

/** Whether another connection holds the lock that was needed: the same again, a little later, can succeed. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === SQLITE_BUSY || code === SQLITE_LOCKED;
}

/** The error to throw for one that came up while the database was being opened. */
export function openingError(error: unknown, where: string): unknown {
  const code = resultCode(error);
  if (code === SQLITE_NOTADB) {
    return new StoreUnusableError(
      where,
      'it is not an SQLite database, or its header was overwritten; give the path of a new file or of one that Pawl made',
      { cause: error },
    );
  }
  if (code !== undefined && UNUSABLE.has(code)) {
    return new StoreUnusableError(
      where,
      `SQLite says "${messageOf(error)}"; the file and its directory must be readable and writable`,
      { cause: error },
    );
  }
  return storeError(error, where, 'definite');
}

/**
 * The error to throw for one that came up at work.
 *
 * @param outcome whether what was asked surely did not happen.
 */
export function storeError(error: unknown, where: string, outcome: ErrorOutcome): unknown {
  const code = resultCode(error);
  if (code === undefined || isPawlError(error)) return error;
  const said = messageOf(error);
  switch (code) {
    // "SQL logic error" can only be a table or column that is not as it was made: the statements never change.
    case SQLITE_ERROR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return new StoreCorruptError(where, `SQLite says "${said}"`, {
        cause: error,
      });
    case SQLITE_FULL:
      return new EngineUnavailableError(
        `${where} could not be written: the disk is full. Make room.`,
        outcome,
        {
          cause: error,
        },
      );
    default:
      return new EngineUnavailableError(
        `${where} could not be used: SQLite says "${said}". Check the disk and the file's permissions.`,
        outcome,
        { cause: error },
      );
  }
}

/** The primary result code of an SQLite error, `undefined` for any other error. */
function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number')
    return undefined;
  return error.errcode & 0xff;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
