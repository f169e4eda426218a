import { FenceUsageError } from '../errors.ts';
import type { S3Head } from './client.ts';
import { isFences } from './object.ts';

/** Further parameters of a `PutObject`: `ContentType`, `Metadata`, `ServerSideEncryption`, … */
export interface S3WriteOptions {
  readonly ContentType?: string;
  readonly Metadata?: Record<string, string>;
  readonly [parameter: string]: unknown;
}

/** What a raise, which writes the object again, has to carry over. What `GetObject` does not tell (tags, an ACL) it cannot. */
const KEPT = [
  'BucketKeyEnabled',
  'CacheControl',
  'ContentDisposition',
  'ContentEncoding',
  'ContentLanguage',
  'ContentType',
  'Expires',
  'SSEKMSKeyId',
  'ServerSideEncryption',
  'StorageClass',
  'WebsiteRedirectLocation',
];

/** The parameters with which an object was written, as far as they can be read. */
export function keptOf(head: S3Head): Record<string, unknown> {
  return Object.fromEntries(Object.entries(head).filter(([name]) => KEPT.includes(name)));
}

/** @throws FenceUsageError */
export function checkWriteOptions(key: string, body: unknown, options: S3WriteOptions): void {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) {
    throw new FenceUsageError(
      key,
      `The content of "${key}" must be a text or bytes, since its write may have to be repeated; it was ${typeof body}.`,
    );
  }
  for (const name of ['Bucket', 'Key', 'Body', 'IfMatch', 'IfNoneMatch', 'ContentLength', 'ContentMD5']) {
    if (options[name] === undefined) continue;
    throw new FenceUsageError(key, `${name} is set by the fence itself; leave it out.`);
  }
  const taken = Object.keys(options.Metadata ?? {}).find(isFences);
  if (taken === undefined) return;
  throw new FenceUsageError(key, `The metadata ${taken} is the fence's own; take another name.`);
}
