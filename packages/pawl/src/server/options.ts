import { createSecureContext } from 'node:tls';
import { type Clock, systemClock } from '../clock.ts';
import type { Engine } from '../engines/engine.ts';
import { InvalidArgumentError } from '../errors.ts';
import type { SignGrant } from '../node/service.ts';
import type { PawlTracer } from '../protocol/tracer.ts';
import { Authenticator, type KnownToken } from './authenticator.ts';
import { isLoopback } from './http/origin.ts';
import { checkLimits, type Limits } from './limits.ts';
import { Log, type LogEntry } from './log.ts';

/** The port where nothing else is said. */
export const DEFAULT_PORT = 7295;

/** TLS, all in PEM. */
export interface ServerTls {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** Who signs clients' certificates: with it, a client without one is turned away. */
  readonly clientCa?: string | Buffer | undefined;
}

export interface ServeOptions {
  /** Stays the caller's: close it after the server. */
  readonly engine: Engine;
  /** The address to listen on; `127.0.0.1` unless set. On any other than loopback, `auth` or `tls.clientCa` is needed. */
  readonly host?: string | undefined;
  /** 0 for any that is free; 7295 unless set. */
  readonly port?: number | undefined;
  readonly tls?: ServerTls | undefined;
  /** The bearer tokens that are accepted. Without, and without `tls.clientCa`, everybody may do everything. */
  readonly auth?: readonly KnownToken[] | undefined;
  /** Serves everybody who can reach the address, without authentication. */
  readonly insecure?: boolean | undefined;
  readonly limits?: Partial<Limits> | undefined;
  /** Signs every grant, as `signSequencer` of `pawl/fences/sequencer` does: clients then have `lease.sequencer`. */
  readonly sign?: SignGrant | undefined;
  /** How long `close` lets clients move on before it cuts them off, in ms, from 0; 1000 unless set. */
  readonly graceMs?: number | undefined;
  /**
   * Whether every session that is alive gets its whole TTL again when the server starts, for clients who could not renew while it
   * was down. On unless set.
   */
  readonly renewSessions?: boolean | undefined;
  /**
   * Makes a span for each request that changes something, a child of the client's; such as `trace.getTracer('pawl')` of
   * `@opentelemetry/api`.
   */
  readonly tracer?: PawlTracer | undefined;
  /** Called with what happens, for a structured log. */
  readonly log?: ((entry: LogEntry) => void) | undefined;
  /** The system's clock unless set. */
  readonly clock?: Clock | undefined;
}

/** Options after the check, with defaults in place. */
export interface CheckedOptions {
  readonly engine: Engine;
  readonly host: string;
  readonly port: number;
  readonly tls: ServerTls | undefined;
  readonly authenticator: Authenticator | undefined;
  readonly limits: Limits;
  readonly sign: SignGrant | undefined;
  readonly tracer: PawlTracer | undefined;
  readonly graceMs: number;
  readonly renewSessions: boolean;
  readonly log: Log;
  readonly clock: Clock;
}

/** @throws InvalidArgumentError */
export function checkOptions(options: ServeOptions): CheckedOptions {
  const { engine, host = '127.0.0.1', port = DEFAULT_PORT, tls, auth, graceMs = 1000 } = options;
  const { clock = systemClock, insecure = false, renewSessions = true, tracer } = options;
  if (typeof engine?.commit !== 'function')
    throw new InvalidArgumentError('engine', 'an engine, such as await sqliteEngine({ path })', engine);
  if (typeof host !== 'string' || host === '') throw new InvalidArgumentError('host', 'an address', host);
  checkWhole('port', port, 65_535);
  checkWhole('graceMs', graceMs, 3_600_000);
  if (auth !== undefined && (!Array.isArray(auth) || auth.length === 0))
    throw new InvalidArgumentError('auth', 'a list of at least one token', auth);
  if (auth === undefined && tls?.clientCa === undefined && !isLoopback(host) && insecure !== true) {
    throw new InvalidArgumentError(
      'auth',
      `set (or tls.clientCa) on ${host}, which others can reach; insecure: true serves everybody without`,
      auth,
    );
  }
  if (tracer !== undefined && typeof tracer?.startSpan !== 'function')
    throw new InvalidArgumentError('tracer', 'a tracer of @opentelemetry/api', tracer);
  if (tls !== undefined) checkTls(tls);
  return {
    engine,
    host,
    port,
    tls,
    authenticator: auth === undefined ? undefined : new Authenticator(clock, auth),
    limits: checkLimits(options.limits),
    sign: options.sign,
    tracer,
    graceMs,
    renewSessions,
    log: new Log(clock, options.log),
    clock,
  };
}

function checkTls({ cert, key, clientCa }: ServerTls): void {
  try {
    if (cert.length === 0 || key.length === 0) throw new RangeError('one of them is empty');
    createSecureContext({ cert, key, ...(clientCa === undefined ? {} : { ca: clientCa }) });
  } catch (error) {
    // Neither is shown: one of them is a secret.
    const said = error instanceof Error ? error.message : 'they cannot be read';
    throw new InvalidArgumentError('tls', 'a certificate and its key in PEM', said);
  }
}

function checkWhole(parameter: string, value: unknown, most: number): void {
  if (Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= most) return;
  throw new InvalidArgumentError(parameter, `a whole number from 0 to ${most}`, value);
}
