import type { Token } from '../../token.ts';
import { failureOf } from '../aws-failure.ts';
import { type Bearer, type BearerRules, checkResource, checkRules, claimOf, refusal } from '../bearer.ts';
import { ContentionError, FenceUsageError, WriteUnknownError } from '../errors.ts';
import type { S3Like, S3Put } from './client.ts';
import {
  type Found,
  foundIn,
  hasHappened,
  marked,
  metadataOf,
  newWrite,
  otherMetadata,
  unmarked,
} from './object.ts';
import { checkWriteOptions, keptOf, type S3WriteOptions } from './options.ts';

export { ContentionError, WriteUnknownError } from '../errors.ts';
export type { S3Head, S3Like, S3Put } from './client.ts';
export type { S3WriteOptions } from './options.ts';

export interface S3FenceOptions extends BearerRules {
  readonly bucket: string;
  /** How often to try at most where others write at the same moment; 20 unless set. */
  readonly attempts?: number | undefined;
}

/** The content of a fenced object, and under which token it was written. */
export interface S3Content {
  readonly body: Uint8Array;
  /** `undefined` where no fence has written it. */
  readonly token: Token | undefined;
}

/** A fence around each object of a bucket; the name of the resource is its key. */
export interface S3Fence {
  /**
   * Honours the token, so that older holders are refused from now on: call it before the first read (S8). It writes the object again, with the token,
   * unless the token stands there already; where there is none yet, one without content.
   *
   * @throws StaleTokenError, MissingTokenError, InvalidTokenError; by its rules InvalidSequencerError, TokenJumpError; ContentionError; WriteUnknownError
   *   where it may have been honoured or not; FenceUsageError where the server does not write on a condition; the driver's errors as they are, after
   *   which it may have been honoured or not.
   */
  raise(key: string, bearer: Bearer): Promise<void>;
  /**
   * Replaces the object, if the token is not lower than the highest that it has honoured, in one conditional write.
   *
   * @param options further parameters of `PutObject`, such as `ContentType`.
   * @throws as {@link raise}
   */
  write(key: string, bearer: Bearer, body: string | Uint8Array, options?: S3WriteOptions): Promise<void>;
  /** Reads the object as it was written; `undefined` where there is none. @throws FenceUsageError; the driver's errors as they are. */
  read(key: string): Promise<S3Content | undefined>;
  /** The highest token honoured so far. */
  highest(key: string): Promise<Token | undefined>;
}

/** What somebody else wrote in between: a condition that does not hold, two at once, or an object that has gone. */
const OVERTAKEN = new Set([412, 409, 404]);

/**
 * A fence for objects of S3, and of servers that evaluate `If-Match` and `If-None-Match` of a `PutObject` as S3 does. Its state stands in the metadata of
 * the object itself, so that check and effect are one conditional write. At the first write it makes sure that the server refuses what it must.
 *
 * @param s3 `S3` of `@aws-sdk/client-s3`, or three functions of an `S3Client`.
 * @throws FenceUsageError
 */
export function s3Fence(s3: S3Like, options: S3FenceOptions): S3Fence {
  const { bucket, attempts = 20, ...rules } = options;
  if (typeof s3?.putObject !== 'function' || typeof bucket !== 'string' || bucket === '') {
    throw new FenceUsageError('s3', 'A fence in S3 needs an S3 of @aws-sdk/client-s3, and a bucket.');
  }
  if (!Number.isSafeInteger(attempts) || attempts < 1) {
    throw new FenceUsageError('s3', `attempts must be a whole number from 1, but was ${attempts}.`);
  }
  checkRules(rules);
  /** Ceph 16 compares with the ETag without its quotes, S3 with or without. */
  let isBare = false;
  let isProven = false;

  const absent = (error: unknown): undefined => {
    const { status, name } = failureOf(error);
    if (status !== 404 || name === 'NoSuchBucket') throw error;
  };

  const look = async (key: string): Promise<Found | undefined> => {
    const head = await s3.headObject({ Bucket: bucket, Key: key }).catch(absent);
    return head && foundIn(key, head);
  };

  const load = async (key: string): Promise<{ found: Found; body: Uint8Array } | undefined> => {
    const object = await s3.getObject({ Bucket: bucket, Key: key }).catch(absent);
    if (object === undefined) return undefined;
    const found = foundIn(key, object);
    const bytes = (await object.Body?.transformToByteArray()) ?? new Uint8Array();
    return { found, body: unmarked(key, found, bytes) };
  };

  /** A server that ignores conditions would let everybody in, and say nothing of it. */
  const prove = async (put: S3Put): Promise<void> => {
    const { IfMatch: _match, IfNoneMatch: _none, ...again } = put;
    for (const condition of [{ IfNoneMatch: '*' }, { IfMatch: `"${'0'.repeat(32)}"` }]) {
      const refused = await s3.putObject({ ...again, ...condition }).then(
        () => false,
        (error) => OVERTAKEN.has(failureOf(error).status ?? 0) || Promise.reject(error),
      );
      if (refused) continue;
      const [name] = Object.keys(condition);
      throw new FenceUsageError(
        put.Key,
        `The server of "${put.Key}" ignored ${name} of a PutObject, so nothing there can be fenced; this one write stays. Use one that writes on a condition, as S3 does.`,
      );
    }
    isProven = true;
  };

  /** @returns whether it was written; `false` only where it surely was not, since others came first. */
  const replace = async (put: S3Put, write: string, before: Found | undefined): Promise<boolean> => {
    try {
      await s3.putObject(put);
      return true;
    } catch (error) {
      const { status, attempts: sent, name } = failureOf(error);
      const overtaken = OVERTAKEN.has(status ?? 0) && name !== 'NoSuchBucket';
      if (overtaken && sent === 1) return false;
      if (!overtaken && status !== undefined && status < 500) throw error;
      // The answer was lost, or that of an earlier try: then the driver's repetition has met what it wrote itself.
      const now = await look(put.Key).catch(() => Promise.reject(error));
      const happened = hasHappened(write, before, now);
      if (happened === undefined) throw new WriteUnknownError(put.Key, error);
      // Where nothing has changed yet it can still be on its way.
      if (!happened && !overtaken && now?.etag === before?.etag) throw error;
      return happened;
    }
  };

  /** Writes what `next` makes of what it finds, until nobody comes between. */
  const settle = async (
    key: string,
    bearer: Bearer,
    next: () => Promise<{ found: Found | undefined; content: Partial<S3Put> & { Body?: Uint8Array } }>,
  ): Promise<void> => {
    const claim = claimOf(key, bearer, rules);
    let refusedEtag: string | undefined;
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      const { found, content } = await next();
      const refused = refusal(key, claim, found?.token);
      if (refused !== undefined) throw refused;
      if (found !== undefined && found.etag === refusedEtag) isBare = !isBare;
      const write = newWrite();
      const { Body = new Uint8Array(), Metadata, ...more } = content;
      const etag = isBare ? found?.etag.replaceAll('"', '') : found?.etag;
      const put: S3Put = {
        ...more,
        Bucket: bucket,
        Key: key,
        Body: marked(Body, write),
        Metadata: { ...Metadata, ...metadataOf(claim.token, write, found, content.Body !== undefined) },
        ...(etag === undefined ? { IfNoneMatch: '*' } : { IfMatch: etag }),
      };
      if (await replace(put, write, found)) return isProven ? undefined : prove(put);
      refusedEtag = found?.etag;
    }
    throw new ContentionError(key, attempts);
  };

  const raise = async (key: string, bearer: Bearer): Promise<void> => {
    checkResource(key);
    const claim = claimOf(key, bearer, rules);
    const there = await look(key);
    const refused = refusal(key, claim, there?.token);
    if (refused !== undefined) throw refused;
    if (there?.token === claim.token) return;
    await settle(key, bearer, async () => {
      const object = await load(key);
      if (object === undefined) return { found: undefined, content: {} };
      const { found, body } = object;
      const kept = { ...keptOf(found.head), Metadata: otherMetadata(found.head.Metadata) };
      return { found, content: found.hasContent ? { ...kept, Body: body } : kept };
    });
  };

  const write = async (
    key: string,
    bearer: Bearer,
    body: string | Uint8Array,
    more: S3WriteOptions = {},
  ): Promise<void> => {
    checkResource(key);
    checkWriteOptions(key, body, more);
    const Body = typeof body === 'string' ? Buffer.from(body) : body;
    await settle(key, bearer, async () => ({ found: await look(key), content: { ...more, Body } }));
  };

  const read = async (key: string): Promise<S3Content | undefined> => {
    checkResource(key);
    const object = await load(key);
    return object?.found.hasContent ? { body: object.body, token: object.found.token } : undefined;
  };

  const highest = async (key: string): Promise<Token | undefined> => {
    checkResource(key);
    return (await look(key))?.token;
  };

  return { raise, write, read, highest };
}
