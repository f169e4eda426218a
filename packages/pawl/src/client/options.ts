import { hostname } from 'node:os';
import type { Mode, Owner } from '../core/records.ts';
import type { EngineGuarantees } from '../engines/engine.ts';
import { InvalidArgumentError, TtlTooShortError } from '../errors.ts';
import { checkDuration, checkName, checkOwner } from '../protocol/arguments.ts';

export { checkDuration, checkName, checkPermits, LONGEST_MS, MOST_LOCKS } from '../protocol/arguments.ts';

/** A lease lasts so long without renewal unless told otherwise, in ms: also how long a dead holder blocks the others. */
export const DEFAULT_TTL_MS = 10_000;

/** Asked for once: the answer is a system call away. */
const OWN: Owner = { host: hostname(), pid: String(process.pid) };

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
  /** Called when it comes to stand in a queue. */
  readonly onQueued?: (() => void) | undefined;
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
  return {
    ttlMs,
    waitMs,
    mode,
    signal,
    requestId,
    owner: checkOwner(settings.owner, OWN),
    lockDelayMs,
    barging,
  };
}
