import { randomBytes } from 'node:crypto';
import { parseToken, type Token } from '../../token.ts';
import { FenceUsageError } from '../errors.ts';
import type { S3Head } from './client.ts';

/*
 * A condition of S3 compares ETags, and an ETag is made of the content alone: a write that changes only the metadata, or that brings an older content
 * back, has the ETag that was there before, and a late writer who has seen that one would pass. So every write ends in a mark of its own, which makes
 * its ETag one that never was and never comes again; then the token may stand in the metadata. The mark is white space, which those who read JSON
 * or text without the fence do not notice.
 */

const TOKEN = 'pawl-token';
/** The last writes, the present one last: so a writer whose answer was lost can tell whether his was among them. */
const WRITES = 'pawl-writes';
/** There is no content yet: the object was made by a raise. */
const RAISED_ONLY = 'pawl-raised-only';

const MARK_BYTES = 65;
const WRITES_KEPT = 8;

/** What stands at a key. */
export interface Found {
  readonly etag: string;
  /** `undefined` where no fence has written it. */
  readonly token: Token | undefined;
  readonly writes: readonly string[];
  readonly hasContent: boolean;
  readonly head: S3Head;
}

/** @throws FenceUsageError where the server gives no ETag, or the metadata was made by something else. */
export function foundIn(resource: string, head: S3Head): Found {
  const { ETag: etag, Metadata: metadata = {} } = head;
  if (etag === undefined) {
    throw new FenceUsageError(
      resource,
      `"${resource}" has no ETag, so nothing can be written on condition that it is unchanged.`,
    );
  }
  const text = metadata[TOKEN];
  const token = parseToken(text);
  if (text !== undefined && token === undefined) {
    throw new FenceUsageError(
      resource,
      `The metadata ${TOKEN} of "${resource}" is "${text}" and no token; no fence wrote that. Correct or remove it.`,
    );
  }
  return {
    etag,
    token,
    writes: metadata[WRITES]?.split(' ') ?? [],
    hasContent: metadata[RAISED_ONLY] === undefined,
    head,
  };
}

/** The name of a write: 64 random bits. */
export function newWrite(): string {
  return randomBytes(8).toString('hex');
}

/** The metadata of a write. */
export function metadataOf(
  token: Token,
  write: string,
  before: Found | undefined,
  hasContent: boolean,
): Record<string, string> {
  const writes = [...(before?.writes ?? []), write].slice(-WRITES_KEPT).join(' ');
  const metadata = { [TOKEN]: token.toString(), [WRITES]: writes };
  return hasContent ? metadata : { ...metadata, [RAISED_ONLY]: 'true' };
}

/** The metadata that is not the fence's. */
export function otherMetadata(metadata: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata).filter(([name]) => !isFences(name)));
}

export function isFences(name: string): boolean {
  return [TOKEN, WRITES, RAISED_ONLY].includes(name.toLowerCase());
}

/** A content with the mark of its write at the end. */
export function marked(content: Uint8Array, write: string): Uint8Array {
  const result = new Uint8Array(content.length + MARK_BYTES);
  result.set(content);
  result.set(markOf(write), content.length);
  return result;
}

/** The content without the mark. @throws FenceUsageError where it does not end in the mark that its metadata names. */
export function unmarked(resource: string, { token, writes }: Found, bytes: Uint8Array): Uint8Array {
  if (token === undefined) return bytes;
  const content = bytes.subarray(0, -MARK_BYTES);
  const mark = markOf(writes.at(-1) ?? '');
  if (content.length + mark.length === bytes.length && mark.equals(bytes.subarray(content.length))) {
    return content;
  }
  throw new FenceUsageError(
    resource,
    `"${resource}" has the metadata of a fence, and other content than the fence wrote: something replaced it and kept the metadata. Write it again, by the fence.`,
  );
}

function markOf(write: string): Buffer {
  const bits = BigInt(`0x0${write}`)
    .toString(2)
    .padStart(MARK_BYTES - 1, '0');
  return Buffer.from(`\n${bits.replaceAll('0', ' ').replaceAll('1', '\t')}`);
}

/**
 * Whether a write has happened, as far as can be told from what is there later; `undefined` where it cannot.
 *
 * @param before what it was to replace, and nothing else.
 */
export function hasHappened(
  write: string,
  before: Found | undefined,
  now: Found | undefined,
): boolean | undefined {
  if (now?.etag === before?.etag) return false;
  if (now?.token === undefined) return undefined;
  if (now.writes.includes(write)) return true;
  const last = before?.writes.at(-1);
  // Whatever replaced the same as this was to replace came in its stead.
  const isKnown = last === undefined ? now.writes.length < WRITES_KEPT : now.writes.includes(last);
  return isKnown ? false : undefined;
}
