import { createSecretKey, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS, type Parsed } from '../../src/cli/options.ts';
import { parseCommand } from '../../src/cli/parse.ts';
import { type ServeConfig, serveConfig } from '../../src/cli/serve-config.ts';
import { memoryEngine } from '../../src/engines/memory/index.ts';
import { InvalidArgumentError, StoreUnusableError } from '../../src/errors.ts';
import { DEFAULT_LIMITS } from '../../src/server/limits.ts';
import { checkOptions } from '../../src/server/options.ts';
import { serve } from '../../src/server/serve.ts';
import { anyJson, mutatedBytes, mutatedText } from './mutations.ts';

let folder: string;
const engine = memoryEngine();
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-fuzz-'));
  writeFileSync(join(folder, 'key'), randomBytes(32).toString('hex'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await engine.close();
});

function file(name: string, content: string | Uint8Array): string {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

/** The configuration, checked as the server checks it; `undefined` where it was refused with a typed error. */
function read(options: Partial<Parsed<'serve'>['options']>): ServeConfig | undefined {
  try {
    const config = serveConfig({ ...parseCommand('serve', []).options, ...options });
    checkOptions({ ...config, engine });
    return config;
  } catch (error) {
    expect(error).toSatisfy(
      (each) => each instanceof InvalidArgumentError || each instanceof StoreUnusableError,
    );
    return undefined;
  }
}

const token = fc.record(
  {
    name: fc.string(),
    sha256: fc.constantFrom('0a'.repeat(32), 'F1'.repeat(32)),
    permissions: fc.array(
      fc.record({
        prefix: fc.stringMatching(/^[a-z]{0,4}$/),
        rights: fc.subarray(['acquire', 'read', 'break', 'admin']),
      }),
      { maxLength: 2 },
    ),
    expiresAtMs: fc.nat(),
  },
  { requiredKeys: ['name', 'sha256', 'permissions'] },
);
const config = fc.record(
  {
    db: fc.constant('locks.db'),
    host: fc.constantFrom('127.0.0.1', '::1', 'localhost'),
    port: fc.integer({ min: 0, max: 65_535 }),
    auth: fc.array(token, { minLength: 1, maxLength: 2 }),
    insecure: fc.boolean(),
    trace: fc.boolean(),
    limits: fc.dictionary(fc.constantFrom(...Object.keys(DEFAULT_LIMITS)), fc.integer({ min: 1 }), {
      maxKeys: 3,
    }),
  },
  { requiredKeys: [] },
);

describe('the configuration of a server', () => {
  it('that is valid is taken as it is', () => {
    fc.assert(
      fc.property(config, (given) => {
        expect(read({ config: file('config.json', JSON.stringify(given)) })).toMatchObject({
          ...JSON.parse(JSON.stringify(given)),
          insecure: given.insecure === true,
          trace: given.trace === true,
        });
      }),
      { numRuns: 50 },
    );
  });

  it('that is mutated is taken as it is, or refused with a typed error', () => {
    let refused = 0;
    fc.assert(
      fc.property(mutatedText(config), (text) => {
        const found = read({ config: file('config.json', text) });
        if (found === undefined) {
          refused += 1;
          return;
        }
        // Nothing that stands there is passed over in silence.
        const { db, host, port, insecure = false, trace = false, auth, limits } = JSON.parse(text);
        expect(JSON.parse(JSON.stringify(found))).toEqual(
          JSON.parse(JSON.stringify({ db, host, port, insecure, auth, limits, trace })),
        );
      }),
      { numRuns: 200 },
    );
    expect(refused).toBeGreaterThan(20);
  });

  it('that is any JSON, or names files that are not there, is refused with a typed error', () => {
    const keys = fc.constantFrom(
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
    );
    fc.assert(
      fc.property(fc.oneof(anyJson, fc.dictionary(keys, anyJson)), (value) => {
        read({ config: file('config.json', JSON.stringify(value)) });
      }),
      { numRuns: 200 },
    );
  });

  it('whose file of tokens is mutated is refused with a typed error, or has those tokens', () => {
    fc.assert(
      fc.property(mutatedText(fc.array(token, { maxLength: 2 })), (text) => {
        const found = read({ auth: file('auth.json', text) });
        if (found !== undefined) expect(found.auth).toEqual(JSON.parse(text));
      }),
      { numRuns: 100 },
    );
  });

  it('whose key for sequencers is no key is refused with a typed error', () => {
    const good = readFileSync(join(folder, 'key'));
    expect(read({ 'sequencer-key': join(folder, 'key') })?.sign).toBeTypeOf('function');
    expect(createSecretKey(good).symmetricKeySize).toBeGreaterThanOrEqual(32);
    const pem = Buffer.from(
      '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA==\n-----END PRIVATE KEY-----\n',
    );
    fc.assert(
      fc.property(mutatedBytes(fc.constantFrom<Uint8Array[]>(pem, Buffer.from('short'))), (bytes) => {
        read({ 'sequencer-key': file('bad-key', bytes) });
      }),
      { numRuns: 60 },
    );
  });

  it('whose certificate is none is refused with a typed error', async () => {
    const pem = Buffer.from('-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIU\n-----END CERTIFICATE-----\n');
    await fc.assert(
      fc.asyncProperty(mutatedBytes(fc.constantFrom<Uint8Array[]>(pem, Buffer.from(''))), async (bytes) => {
        const path = file('cert.pem', bytes);
        expect(read({ 'tls-cert': path, 'tls-key': path })).toBeUndefined();
        const tls = { cert: bytes, key: bytes };
        const refusal = await serve({ engine, port: 0, tls }).then(
          (server) => server.close().then(() => 'served'),
          (error: unknown) => error,
        );
        expect(refusal).toBeInstanceOf(InvalidArgumentError);
      }),
      { numRuns: 20 },
    );
  });

  it('every key of the file has its option, so that none is forgotten here', () => {
    expect(Object.keys(COMMANDS.serve.options)).toEqual(
      expect.arrayContaining([
        'db',
        'host',
        'port',
        'tls-cert',
        'tls-key',
        'client-ca',
        'auth',
        'insecure',
        'sequencer-key',
        'trace',
      ]),
    );
  });
});
