import type { Bearer } from '../bearer.ts';

/** Why a request was refused, as RFC 9457 has it. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  /** The code of Pawl's error. */
  readonly code: string;
  readonly resource: string;
  /** What the request carried; a decimal string where it was a token. */
  readonly token?: string | undefined;
  /** The highest token honoured so far. */
  readonly highest?: string | undefined;
}

export const PROBLEM_TYPE = 'application/problem+json';

const KINDS: Readonly<Record<string, readonly [status: number, name: string, title: string]>> = {
  PAWL_STALE_TOKEN: [409, 'stale-token', 'Stale fencing token'],
  PAWL_MISSING_TOKEN: [428, 'missing-token', 'Fencing token required'],
  PAWL_INVALID_TOKEN: [400, 'invalid-token', 'Invalid fencing token'],
  PAWL_INVALID_SEQUENCER: [400, 'invalid-sequencer', 'Invalid sequencer'],
  PAWL_TOKEN_JUMP: [400, 'token-jump', 'Fencing token too high'],
};

/**
 * What a fence's refusal is to a client, for the error handler of a server whose handlers check tokens too. By the error's code, not by its
 * class.
 *
 * @param request what is known of the request, where the error does not say it.
 * @returns `undefined` where the error is another: the server's own trouble.
 */
export function problemOf(
  error: unknown,
  request: { readonly resource?: string; readonly bearer?: Bearer } = {},
): Problem | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  const code = String(error.code);
  const [status, name, title] = (Object.hasOwn(KINDS, code) ? KINDS[code] : undefined) ?? [];
  if (status === undefined || title === undefined) return undefined;
  const { highest, resource, token } = error as { highest?: unknown; resource?: unknown; token?: unknown };
  const carried = request.bearer ?? token;
  return {
    type: `urn:pawl:problem:${name}`,
    title,
    status,
    detail: error.message,
    code,
    resource: String(request.resource ?? resource),
    ...(typeof carried === 'bigint' || typeof carried === 'string' ? { token: String(carried) } : {}),
    ...(typeof highest === 'bigint' ? { highest: highest.toString() } : {}),
  };
}
