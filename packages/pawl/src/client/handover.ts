import { InvalidArgumentError } from '../errors.ts';
import { parseToken, type Token } from '../token.ts';

/** What one process tells another to hand a lease over. */
export interface Handover {
  readonly name: string;
  readonly token: Token;
  /** A session opened for the handover only, which nobody renews. */
  readonly session: string;
  readonly request: string;
  readonly ttlMs: number;
}

const HEAD = 'pawl1.';

export function writeHandover(handover: Handover): string {
  const text = JSON.stringify({ ...handover, token: handover.token.toString() });
  return HEAD + Buffer.from(text, 'utf8').toString('base64url');
}

/** @throws InvalidArgumentError where `text` is nothing that `lease.export()` wrote. */
export function readHandover(text: unknown): Handover {
  const handover =
    typeof text === 'string' && text.startsWith(HEAD) ? parse(text.slice(HEAD.length)) : undefined;
  if (handover === undefined)
    throw new InvalidArgumentError('exported', 'a text that lease.export() returned', text);
  return handover;
}

function parse(encoded: string): Handover | undefined {
  let value: Partial<Record<keyof Handover, unknown>> | null;
  try {
    value = JSON.parse(Buffer.from(encoded, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { name, session, request, ttlMs } = value;
  const token = parseToken(value.token);
  if (typeof name !== 'string' || typeof session !== 'string' || typeof request !== 'string')
    return undefined;
  if (!/^[\w-]{1,64}$/.test(session) || name === '' || request === '') return undefined;
  if (token === undefined || typeof ttlMs !== 'number' || !Number.isSafeInteger(ttlMs) || ttlMs < 1)
    return undefined;
  return { name, token, session, request, ttlMs };
}
