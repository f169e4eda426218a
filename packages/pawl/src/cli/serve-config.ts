import { createPrivateKey, createSecretKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { InvalidArgumentError, StoreUnusableError } from '../errors.ts';
import { signSequencer } from '../fences/sequencer.ts';
import type { SignGrant } from '../node/service.ts';
import type { KnownToken, Limits, ServerTls } from '../server/index.ts';
import type { Parsed } from './options.ts';

/** What `pawl serve` runs with, from its options, the environment and its file. */
export interface ServeConfig {
  readonly db: string | undefined;
  readonly host: string | undefined;
  readonly port: number | undefined;
  readonly tls: ServerTls | undefined;
  readonly auth: readonly KnownToken[] | undefined;
  readonly insecure: boolean;
  readonly limits: Partial<Limits> | undefined;
  readonly sign: SignGrant | undefined;
  /** Whether the tracer is that of the process. */
  readonly trace: boolean;
}

/** The keys of the file of `--config`. Files that it names are relative to where the server is started. */
const KEYS = [
  'db',
  'host',
  'port',
  'tlsCert',
  'tlsKey',
  'clientCa',
  'auth',
  'insecure',
  'limits',
  'sequencerKey',
  'trace',
];

/**
 * An option, or its variable in the environment, goes before what the file says.
 *
 * @throws InvalidArgumentError, StoreUnusableError
 */
export function serveConfig(options: Parsed<'serve'>['options']): ServeConfig {
  const file = options.config === undefined ? {} : readObject('--config', options.config);
  for (const key of Object.keys(file)) {
    if (!KEYS.includes(key))
      throw new InvalidArgumentError(`${options.config}: ${key}`, `one of ${KEYS.join(', ')}`, key);
  }
  const text = (option: string | undefined, key: string): string | undefined => {
    const value = option ?? file[key];
    if (value === undefined || (typeof value === 'string' && value !== '')) return value;
    throw new InvalidArgumentError(`${options.config}: ${key}`, 'a text', value);
  };
  const cert = text(options['tls-cert'], 'tlsCert');
  const key = text(options['tls-key'], 'tlsKey');
  const clientCa = text(options['client-ca'], 'clientCa');
  if ((cert === undefined) !== (key === undefined)) {
    throw new InvalidArgumentError('tls-cert', 'given together with tls-key', cert);
  }
  if (clientCa !== undefined && cert === undefined) {
    throw new InvalidArgumentError('client-ca', 'given together with tls-cert and tls-key', clientCa);
  }
  const tls =
    cert === undefined || key === undefined
      ? undefined
      : {
          cert: readText('tls-cert', cert),
          key: readText('tls-key', key),
          ...(clientCa === undefined ? {} : { clientCa: readText('client-ca', clientCa) }),
        };
  const { port = file.port } = options;
  const flag = (key: 'insecure' | 'trace'): boolean => {
    const { [key]: value = false } = file;
    if (typeof value === 'boolean') return options[key] || value;
    throw new InvalidArgumentError(`${options.config}: ${key}`, 'true or false', value);
  };
  return {
    db: text(options.db, 'db'),
    host: text(options.host, 'host'),
    // Of the wrong type or out of range, the server says so.
    port: port as number | undefined,
    tls,
    auth: readTokens(options.auth) ?? (file.auth as readonly KnownToken[] | undefined),
    insecure: flag('insecure'),
    limits: file.limits as Partial<Limits> | undefined,
    sign: signer(text(options['sequencer-key'], 'sequencerKey')),
    trace: flag('trace'),
  };
}

/** @throws InvalidArgumentError, StoreUnusableError */
function signer(path: string | undefined): SignGrant | undefined {
  if (path === undefined) return undefined;
  const text = readText('--sequencer-key', path);
  try {
    const key = text.includes('-----BEGIN')
      ? createPrivateKey(text)
      : createSecretKey(Buffer.from(text.trim()));
    const sign: SignGrant = (grant) => signSequencer(key, grant);
    // A key that does not fit is noticed now and not at the first grant.
    sign({ lock: 'a', mode: 'exclusive', slot: 0, token: 1n });
    return sign;
  } catch {
    const expected = 'the file of an Ed25519 private key, PEM, or of a secret of 32 bytes or more';
    throw new InvalidArgumentError('sequencer-key', expected, path);
  }
}

/** The file of `--auth`: a list as `pawl token` prints its items. */
function readTokens(path: string | undefined): readonly KnownToken[] | undefined {
  if (path === undefined) return undefined;
  const tokens = readJson('--auth', path);
  if (!Array.isArray(tokens))
    throw new InvalidArgumentError(path, 'a JSON list of tokens as pawl token prints them', tokens);
  return tokens;
}

function readObject(option: string, path: string): Record<string, unknown> {
  const value = readJson(option, path);
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new InvalidArgumentError(path, 'a JSON object', value);
}

function readJson(option: string, path: string): unknown {
  try {
    return JSON.parse(readText(option, path));
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new StoreUnusableError(`The file of ${option}, ${path},`, `it is not JSON: ${cause.message}`, {
      cause,
    });
  }
}

function readText(option: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new StoreUnusableError(`The file of ${option}, ${path},`, `it cannot be read: ${said}`, { cause });
  }
}
