import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { COMMANDS, type CommandName } from '../../src/cli/options.ts';
import { parseCommand, UsageError } from '../../src/cli/parse.ts';
import { addressParts } from '../../src/cli/store-address.ts';
import { readHandover, writeHandover } from '../../src/client/handover.ts';
import { InvalidArgumentError } from '../../src/errors.ts';
import { mutatedBytes } from './mutations.ts';

const RUNS = 1000;

const names = Object.keys(COMMANDS) as CommandName[];
const optionNames = [...new Set(names.flatMap((name) => Object.keys(COMMANDS[name].options)))];

const value = fc.oneof(
  fc.constantFrom(
    '',
    '0',
    '-1',
    '1',
    '10s',
    '1.5h',
    '99999999999999h',
    '1e9',
    'NaN',
    '0x10',
    '9223372036854775808',
  ),
  fc.constantFrom(
    'a,b',
    ',',
    'a,,b',
    '1.0',
    '0.5',
    '--',
    '-',
    '=',
    '\0',
    '\ud800',
    '🔒',
    '__proto__',
    'true',
  ),
  fc.string({ unit: 'binary', maxLength: 8 }),
);
const option = fc.oneof(
  fc.constantFrom(...optionNames.map((name) => `--${name}`)),
  fc.constantFrom(
    '--',
    '-',
    '-x',
    '--no-json',
    '--json=1',
    '--__proto__',
    '--constructor',
    '--toString=1',
    '--=',
    '---',
  ),
);
const argument = fc.oneof(
  value,
  option,
  fc.tuple(option, value).map(([name, given]) => `${name}=${given}`),
);
const args = fc.array(argument, { maxLength: 6 });

/** Every variable that any option reads. */
const variables = [
  ...new Set(
    names.flatMap((name) =>
      Object.values(COMMANDS[name].options).flatMap((spec) => ('env' in spec ? [spec.env] : [])),
    ),
  ),
];

describe('the command line', () => {
  const before = { ...process.env };
  afterEach(() => {
    for (const name of variables) delete process.env[name];
    Object.assign(process.env, before);
  });

  it.each(names)('%s takes any arguments, or says what is wrong with them', (name) => {
    fc.assert(
      fc.property(args, fc.option(fc.tuple(fc.constantFrom(...variables), value)), (given, variable) => {
        for (const each of variables) delete process.env[each];
        // The environment has no null bytes.
        if (variable !== null && !variable[1].includes('\0')) process.env[variable[0]] = variable[1];
        let parsed: ReturnType<typeof parseCommand>;
        try {
          parsed = parseCommand(name, given);
        } catch (error) {
          expect(error).toBeInstanceOf(UsageError);
          expect((error as UsageError).message).not.toBe('');
          return;
        }
        expect(fits(name, parsed.options)).toEqual([]);
        expect(parsed.positionals.length).toBeLessThanOrEqual(COMMANDS[name].positionals.length);
      }),
      { numRuns: Math.ceil(RUNS / names.length) },
    );
  });

  it('the address of a store is taken apart, or refused without its password', () => {
    const host = fc.constantFrom('a:1', 'a:1,b:2', '[::1]:2181', '', ',', ':', 'a b');
    const account = fc.constantFrom(
      '',
      'user@',
      'user:hunter2@',
      '%41:hunter2@',
      '%:hunter2@',
      'u:%zz@',
      'u:%ff@',
    );
    const tail = fc.constantFrom(
      '',
      '/',
      '/p',
      '/p/q/',
      '?minTtlMs=5',
      '?minTtlMs=x',
      '/p?minTtlMs=1',
      '?',
      '#',
    );
    const address = fc
      .tuple(fc.constantFrom('etcd', 'etcds', 'zookeeper', 'ETCD'), account, host, tail)
      .map(([scheme, who, where, rest]) => `${scheme}://${who}${where}${rest}`);
    fc.assert(
      fc.property(
        fc.oneof(address, mutatedBytes(address.map((each) => Buffer.from(each))).map(String)),
        (each) => {
          try {
            const { hosts, scheme, path } = addressParts(each);
            expect([scheme, ...hosts]).not.toContain('');
            expect(path.endsWith('/')).toBe(false);
          } catch (error) {
            expect(error).toBeInstanceOf(InvalidArgumentError);
            if (/^[^:]*:\/\/[^:@]*:hunter2@/.test(each) && each.split('hunter2').length === 2)
              expect((error as Error).message).not.toContain('hunter2');
          }
        },
      ),
      { numRuns: RUNS },
    );
  });

  it('a lease that was handed over is read as it was written, and anything else is refused', () => {
    const lease = fc.record({
      name: fc.string({ minLength: 1 }),
      token: fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }),
      session: fc.stringMatching(/^[\w-]{1,64}$/),
      request: fc.string({ minLength: 1 }),
      ttlMs: fc.integer({ min: 1 }),
    });
    fc.assert(
      fc.property(lease, (each) => {
        fc.pre(each.name.isWellFormed() && each.request.isWellFormed());
        expect(readHandover(writeHandover(each))).toEqual(each);
      }),
      { numRuns: 100 },
    );
    fc.assert(
      fc.property(
        fc.oneof(
          mutatedBytes(lease.map((each) => Buffer.from(writeHandover(each)))).map(String),
          fc.anything(),
        ),
        (text) => {
          try {
            expect(readHandover(text).token).toBeGreaterThan(0n);
          } catch (error) {
            expect(error).toBeInstanceOf(InvalidArgumentError);
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

/** Which options are not of the type that the table says. */
function fits(name: CommandName, options: Readonly<Record<string, unknown>>): string[] {
  const specs = COMMANDS[name].options as Readonly<
    Record<string, { type: string; required?: true; default?: string }>
  >;
  return Object.entries(specs).flatMap(([option, spec]) => {
    const given = options[option];
    if (given === undefined)
      return spec.type === 'flag' || spec.required || spec.default !== undefined ? [option] : [];
    return IS[spec.type]?.(given) === true ? [] : [`${option}: ${String(given)}`];
  });
}

const isWhole = (given: unknown) => Number.isSafeInteger(given) && (given as number) >= 0;
const isText = (given: unknown) => typeof given === 'string' && given !== '';
const IS: Readonly<Record<string, (given: unknown) => boolean>> = {
  flag: (given) => typeof given === 'boolean',
  text: isText,
  list: (given) => Array.isArray(given) && given.length > 0 && given.every(isText),
  duration: isWhole,
  count: isWhole,
  share: (given) => typeof given === 'number' && given >= 0 && given <= 1,
  token: (given) => typeof given === 'bigint' && given > 0n && given < 2n ** 63n,
};
