import { createHmac, createPublicKey, type KeyObject, sign, timingSafeEqual, verify } from 'node:crypto';
import { isToken, parseToken, type Token } from '../token.ts';
import { FenceUsageError, InvalidSequencerError } from './errors.ts';

/**
 * A token with the name of its lock, signed: a resource can tell without asking anybody that the lock service gave it out. So
 * nobody can make up a huge token and shut everyone out. The name and the idea are Chubby's (Burrows, OSDI 2006, §2.4).
 */
export interface Sequencer {
  readonly lock: string;
  readonly mode: 'exclusive' | 'shared';
  /** The permit of a semaphore, 0 otherwise. */
  readonly slot: number;
  readonly token: Token;
  /** When it ends to be accepted, in ms since the Unix epoch; never unless set. What makes late writes harmless is the token, not this. */
  readonly expiresAt?: number | undefined;
}

/** One key, or several while one takes over from another. */
export type SequencerKeys = KeyObject | readonly KeyObject[];

/** The format; part of what is signed. */
const PREFIX = 'pawl1';
const LONGEST = 4096;
const SHORTEST_SECRET = 32;

/**
 * Signs a sequencer.
 *
 * @param key a secret of at least 32 bytes (`createSecretKey`: HMAC-SHA256, whoever verifies can also sign), or an Ed25519 private
 *   key (resources need only the public one).
 * @returns text of letters, digits, `-`, `_` and `.`; fit for a header.
 * @throws FenceUsageError
 */
export function signSequencer(key: KeyObject, sequencer: Sequencer): string {
  const { lock, mode, slot, token, expiresAt } = sequencer;
  if (!isSequencer(sequencer)) {
    throw new FenceUsageError(
      String(lock),
      'A sequencer has a lock, a mode ("exclusive" or "shared"), a slot from 0, a token, and where it expires a whole number of ms.',
    );
  }
  const fields = [lock, mode, slot, token.toString(), ...(expiresAt === undefined ? [] : [expiresAt])];
  const signed = `${PREFIX}.${Buffer.from(JSON.stringify(fields)).toString('base64url')}`;
  const text = `${signed}.${signatureOf(key, signed).toString('base64url')}`;
  if (text.length > LONGEST)
    throw new FenceUsageError(lock, 'The name of the lock is too long to be signed.');
  return text;
}

/**
 * Reads a sequencer and verifies who signed it.
 *
 * @param keys secrets, or Ed25519 public keys; any of them may have signed.
 * @param options `nowMs`: the time, in ms since the Unix epoch. Without it a sequencer that expires is refused.
 * @throws InvalidSequencerError, FenceUsageError where a key is of another kind.
 */
export function verifySequencer(
  keys: SequencerKeys,
  text: string,
  options: { readonly nowMs?: number | undefined; readonly resource?: string | undefined } = {},
): Sequencer {
  const { resource = 'the verifier', nowMs } = options;
  const refuse = (reason: string) => new InvalidSequencerError(resource, reason);
  const [signed, fields, signature] = split(text) ?? [];
  if (signed === undefined || fields === undefined || signature === undefined) {
    throw refuse('it has not the form of one');
  }
  const all = checkKeys(keys);
  if (!all.some((key) => isSignedBy(key, signed, signature))) {
    throw refuse('it was not signed by a key that is known here, or was changed');
  }
  const sequencer = readFields(fields);
  if (sequencer === undefined) throw refuse('it was signed, but is none');
  if (sequencer.expiresAt !== undefined) {
    if (nowMs === undefined) throw refuse('it expires, but no clock was given that tells when');
    if (nowMs >= sequencer.expiresAt) throw refuse('it has expired');
  }
  return sequencer;
}

/** @throws FenceUsageError where there is no key, or one that does not fit. */
export function checkKeys(keys: SequencerKeys): readonly KeyObject[] {
  const all = Array.isArray(keys) ? (keys as readonly KeyObject[]) : [keys as KeyObject];
  if (all.length === 0) throw wrongKey();
  for (const key of all) checkKey(key);
  return all;
}

function checkKey(key: KeyObject): void {
  const fits =
    typeof key === 'object' && key !== null && key.type === 'secret'
      ? (key.symmetricKeySize ?? 0) >= SHORTEST_SECRET
      : key?.asymmetricKeyType === 'ed25519';
  if (!fits) throw wrongKey();
}

function wrongKey(): FenceUsageError {
  return new FenceUsageError(
    'sequencer',
    `A key for sequencers is a KeyObject: a secret of ${SHORTEST_SECRET} bytes or more, or one of Ed25519.`,
  );
}

function signatureOf(key: KeyObject, signed: string): Buffer {
  checkKey(key);
  if (key.type === 'secret') return createHmac('sha256', key).update(signed).digest();
  if (key.type === 'private') return sign(null, Buffer.from(signed), key);
  throw new FenceUsageError('sequencer', 'A public key cannot sign a sequencer; give the private one.');
}

function isSignedBy(key: KeyObject, signed: string, signature: Buffer): boolean {
  if (key.type === 'secret') {
    const right = signatureOf(key, signed);
    return right.length === signature.length && timingSafeEqual(right, signature);
  }
  const open = key.type === 'private' ? createPublicKey(key) : key;
  return verify(null, Buffer.from(signed), open, signature);
}

function split(text: unknown): [signed: string, fields: Buffer, signature: Buffer] | undefined {
  if (typeof text !== 'string' || text.length > LONGEST) return undefined;
  const [prefix, payload = '', signature = '', ...rest] = text.split('.');
  if (prefix !== PREFIX || rest.length > 0) return undefined;
  const bytes = bytesOf(signature);
  const fields = bytesOf(payload);
  return bytes && fields && [`${prefix}.${payload}`, fields, bytes];
}

/** Several texts stand for the same bytes where the last character has bits to spare; only the one that is written is read. */
function bytesOf(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}

function readFields(bytes: Buffer): Sequencer | undefined {
  try {
    const [lock, mode, slot, token, expiresAt] = JSON.parse(bytes.toString());
    const sequencer = { lock, mode, slot, token: parseToken(token), expiresAt };
    return isSequencer(sequencer) ? sequencer : undefined;
  } catch {
    return undefined;
  }
}

function isSequencer(value: { readonly [K in keyof Sequencer]?: unknown }): value is Sequencer {
  return (
    typeof value.lock === 'string' &&
    value.lock !== '' &&
    value.lock.isWellFormed() &&
    (value.mode === 'exclusive' || value.mode === 'shared') &&
    Number.isSafeInteger(value.slot) &&
    (value.slot as number) >= 0 &&
    isToken(value.token) &&
    (value.expiresAt === undefined || Number.isSafeInteger(value.expiresAt))
  );
}
