import { hostname } from 'node:os';
import { MAX_HOLDERS } from '../core/holders.ts';
import { nameProblem } from '../core/names.ts';
import type { Mode, Owner } from '../core/records.ts';
import type { EngineGuarantees } from '../engines/engine.ts';
import { InvalidArgumentError, TtlTooShortError } from '../errors.ts';

/** A lease lasts so long without renewal unless told otherwise, in ms: also how long a dead holder blocks the others. */
export const DEFAULT_TTL_MS = 10_000;
/** The longest TTL, wait and lock-delay, in ms: 30 days. */
export const LONGEST_MS = 30 * 24 * 3_600_000;
/** The most locks that one `acquireAll` takes. */
export const MOST_LOCKS = 64;
/** The most bytes of JSON that an owner's metadata may have: it stands in every lock's record. */
const OWNER_BYTES = 1024;

/** Asked for once: the answer is a system call away. */
const HOST = hostname();

/** How to acquire. All durations are whole numbers of ms, at most 30 days. */
export interface AcquireSettings {
  /**
   * How long the lease lasts without renewal; it is renewed at a third of that. At least the engine's shortest session;
   * 10 s unless set. Short: a dead holder blocks less. Long: a pause costs fewer leases.
   */
  readonly ttlMs?: number | undefined;
  /** How long to wait at most, counted from the call. 0 is exactly one attempt; without it the wait has no limit. */
  readonly waitMs?: number | undefined;
  /** `exclusive` unless set. Shared holders hold together and have the same token. */
  readonly mode?: Mode | undefined;
  /** Ends the wait; once the lease is granted it means nothing. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Makes the acquire safe to repeat: within one session the same id is the same acquire, also after its release. 1 to 512
   * bytes; made up unless set.
   */
  readonly requestId?: string | undefined;
  /** Who asks, as others see it in `inspect`: a few short strings. The host and process id are added. */
  readonly owner?: Owner | undefined;
  /** For how long the lock stays closed if this holder is lost (not if it releases); 0 unless set. */
  readonly lockDelayMs?: number | undefined;
  /**
   * Trades order for throughput: the release does not hand the lock over but leaves it free, and whoever asks first
   * takes it. Set it on every acquire of a lock or on none.
   */
  readonly barging?: boolean | undefined;
}

/** Settings after the check, with defaults in place. */
export interface CheckedSettings {
  readonly ttlMs: number;
  /** `undefined` for no limit. */
  readonly waitMs: number | undefined;
  readonly mode: Mode;
  readonly signal: AbortSignal | undefined;
  readonly requestId: string | undefined;
  readonly owner: Owner;
  readonly lockDelayMs: number;
  readonly barging: boolean;
}

/** @throws InvalidArgumentError, TtlTooShortError */
export function checkSettings(settings: AcquireSettings, engine: EngineGuarantees): CheckedSettings {
  if (typeof settings !== 'object' || settings === null) {
    throw new InvalidArgumentError('options', 'an object', settings);
  }
  const { ttlMs = DEFAULT_TTL_MS, waitMs, mode = 'exclusive', signal, requestId, lockDelayMs = 0 } = settings;
  checkDuration('ttlMs', ttlMs, 1);
  if (ttlMs < engine.minTtlMs) throw new TtlTooShortError('ttlMs', ttlMs, engine.minTtlMs, engine.engine);
  if (waitMs !== undefined) checkDuration('waitMs', waitMs, 0);
  checkDuration('lockDelayMs', lockDelayMs, 0);
  if (lockDelayMs > 0 && lockDelayMs < engine.minTtlMs) {
    throw new TtlTooShortError('lockDelayMs', lockDelayMs, engine.minTtlMs, engine.engine);
  }
  if (mode !== 'exclusive' && mode !== 'shared') {
    throw new InvalidArgumentError('mode', '"exclusive" or "shared"', mode);
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new InvalidArgumentError('signal', 'an AbortSignal', signal);
  }
  if (requestId !== undefined) checkName(requestId, 'requestId');
  const { barging = false } = settings;
  if (typeof barging !== 'boolean') throw new InvalidArgumentError('barging', 'true or false', barging);
  return { ttlMs, waitMs, mode, signal, requestId, owner: checkOwner(settings.owner), lockDelayMs, barging };
}

/** @throws InvalidArgumentError where `name` is no lock name: 1 to 512 bytes of well-formed Unicode. */
export function checkName(name: unknown, parameter = 'name'): asserts name is string {
  const problem = nameProblem(name);
  if (problem === undefined) return;
  throw new InvalidArgumentError(parameter, `a string of 1 to 512 bytes of UTF-8 (it ${problem})`, name);
}

export function checkDuration(parameter: string, value: unknown, leastMs: number): asserts value is number {
  if (Number.isSafeInteger(value) && Number(value) >= leastMs && Number(value) <= LONGEST_MS) return;
  throw new InvalidArgumentError(
    parameter,
    `a whole number of ms from ${leastMs} to ${LONGEST_MS} (30 days)`,
    value,
  );
}

export function checkPermits(permits: unknown): asserts permits is number {
  if (Number.isSafeInteger(permits) && Number(permits) >= 1 && Number(permits) <= MAX_HOLDERS) return;
  throw new InvalidArgumentError('permits', `a whole number from 1 to ${MAX_HOLDERS}`, permits);
}

function checkOwner(owner: unknown): Owner {
  const own = { host: HOST, pid: String(process.pid) };
  if (owner === undefined) return own;
  const entries = typeof owner === 'object' && owner !== null ? Object.entries(owner) : undefined;
  if (entries === undefined || entries.some(([, value]) => typeof value !== 'string')) {
    throw new InvalidArgumentError('owner', 'an object whose values are strings', owner);
  }
  const whole: Owner = { ...own, ...Object.fromEntries(entries) };
  const bytes = new TextEncoder().encode(JSON.stringify(whole)).length;
  if (bytes > OWNER_BYTES) {
    throw new InvalidArgumentError('owner', `at most ${OWNER_BYTES} bytes as JSON (it has ${bytes})`, owner);
  }
  return whole;
}
