import type { RequestId } from '../core/commands.ts';
import type { Mode, Owner } from '../core/records.ts';
import { InvalidArgumentError } from '../errors.ts';
import { parseToken, type Token } from '../token.ts';
import { checkDuration, checkName, checkOwner, checkPermits } from './arguments.ts';

/**
 * The fields of a JSON object that came from outside. Each reader returns a value of its type or throws
 * InvalidArgumentError that names the field; those that end in `Or` take a default for one that is missing.
 */
export class Fields {
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(value: unknown, what = 'params') {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new InvalidArgumentError(what, 'an object', value);
    }
    this.#values = value as Record<string, unknown>;
  }

  /** The field as it is; what stands in the prototype is no field. */
  raw(field: string): unknown {
    return Object.hasOwn(this.#values, field) ? this.#values[field] : undefined;
  }

  has(field: string): boolean {
    return this.raw(field) !== undefined;
  }

  /** A name, or anything else with a name's limits. */
  name(field: string): string {
    const value = this.raw(field);
    checkName(value, field);
    return value;
  }

  session(field = 'session'): string {
    const value = this.raw(field);
    if (typeof value === 'string' && /^[\w-]{1,64}$/.test(value)) return value;
    throw new InvalidArgumentError(field, 'the id of a session', value);
  }

  requestId(): RequestId {
    return { session: this.session(), request: this.name('request') };
  }

  token(field = 'token'): Token {
    const value = this.raw(field);
    const token = parseToken(value);
    if (token !== undefined) return token;
    throw new InvalidArgumentError(field, 'a token: a decimal number in a string', value);
  }

  booleanOr(field: string, otherwise: boolean): boolean {
    const value = this.raw(field) ?? otherwise;
    if (typeof value === 'boolean') return value;
    throw new InvalidArgumentError(field, 'true or false', value);
  }

  /** A whole number from `least` to `most`. */
  integer(field: string, least: number, most: number): number {
    const value = this.raw(field);
    if (Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most) return Number(value);
    throw new InvalidArgumentError(field, `a whole number from ${least} to ${most}`, value);
  }

  durationOr(field: string, leastMs: number, mostMs: number, otherwiseMs: number | undefined): number {
    const given = this.raw(field);
    // Only what is absent is unset: `null` is no duration, here as in the client.
    const value = given === undefined ? otherwiseMs : given;
    checkDuration(field, value, leastMs, mostMs);
    return value;
  }

  modeOr(otherwise: Mode): Mode {
    const value = this.raw('mode') ?? otherwise;
    if (value === 'exclusive' || value === 'shared') return value;
    throw new InvalidArgumentError('mode', '"exclusive" or "shared"', value);
  }

  permits(): number | null {
    const value = this.raw('permits') ?? null;
    if (value === null) return null;
    checkPermits(value);
    return value;
  }

  owner(): Owner {
    return checkOwner(this.raw('owner'));
  }

  /** A text of at most `mostBytes`, also an empty one. */
  text(field: string, mostBytes: number): string {
    const value = this.raw(field);
    if (typeof value === 'string' && Buffer.byteLength(value) <= mostBytes) return value;
    throw new InvalidArgumentError(field, `a string of at most ${mostBytes} bytes`, value);
  }

  /** A list of `least` to `most` values, each read by `read`. */
  list<T>(field: string, least: number, most: number, read: (value: unknown) => T): T[] {
    const value = this.raw(field);
    if (Array.isArray(value) && value.length >= least && value.length <= most) return value.map(read);
    throw new InvalidArgumentError(field, `a list of ${least} to ${most}`, value);
  }
}
