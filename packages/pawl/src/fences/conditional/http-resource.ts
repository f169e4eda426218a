import { FenceUsageError, UnexpectedResponseError } from '../errors.ts';
import type { Versioned } from './update.ts';

export interface HttpResourceOptions {
  /** What sends the requests; the global `fetch` unless set. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** A representation: text, and of which type. */
export interface Representation {
  readonly body: string;
  readonly type?: string | undefined;
}

/**
 * A resource with an ETag: `GET`, then `PUT` with `If-Match`; where there is none yet, `PUT` with `If-None-Match: *`. Its value is
 * `undefined` then.
 *
 * @throws FenceUsageError when it is read, where the server gives no strong ETag: nothing can be written on that condition.
 *   UnexpectedResponseError where it answers with something else than it was asked for.
 */
export function httpResource(
  url: string | URL,
  { fetch = globalThis.fetch, headers = {} }: HttpResourceOptions = {},
): Versioned<Representation | undefined, Representation, string | undefined> {
  const name = String(url);
  return {
    name,
    async read() {
      const response = await fetch(url, { headers });
      const body = await response.text();
      if (response.status === 404) return { value: undefined, version: undefined };
      if (!response.ok) throw new UnexpectedResponseError(name, 'GET', response.status);
      const version = response.headers.get('etag');
      if (version === null || version.startsWith('W/')) {
        throw new FenceUsageError(
          name,
          `"${name}" has ${version === null ? 'no ETag' : `only the weak ETag ${version}`}, so nothing can be written on condition that it is unchanged.`,
        );
      }
      return { value: { body, type: response.headers.get('content-type') ?? undefined }, version };
    },
    async writeIf({ body, type }, version) {
      const condition = version === undefined ? { 'If-None-Match': '*' } : { 'If-Match': version };
      const response = await fetch(url, {
        method: 'PUT',
        body,
        headers: { ...headers, ...(type === undefined ? {} : { 'Content-Type': type }), ...condition },
      });
      await response.body?.cancel();
      if (response.status === 412) return false;
      if (!response.ok) throw new UnexpectedResponseError(name, 'PUT', response.status);
      return true;
    },
  };
}
