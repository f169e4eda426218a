import { parseArgs } from 'node:util';
import { PawlError } from '../errors.ts';
import { parseToken } from '../token.ts';
import { COMMANDS, type CommandName, type CommandSpec, type OptionSpec, type Parsed } from './options.ts';

/** The command line is not as the table of options wants it. */
export class UsageError extends PawlError {
  readonly code = 'PAWL_USAGE';
}

/**
 * Reads the arguments of one command.
 *
 * @throws UsageError
 */
export function parseCommand<C extends CommandName>(name: C, args: readonly string[]): Parsed<C> {
  const spec: CommandSpec = COMMANDS[name];
  const end = args.indexOf('--');
  const before = end < 0 ? args : args.slice(0, end);
  const command = end < 0 ? [] : args.slice(end + 1);
  const { values, positionals } = split(name, spec, before);

  if (spec.takesCommand === true && command.length === 0) {
    throw new UsageError(
      `There is no command to run; write it after "--", as in: pawl ${name} LOCK -- COMMAND.`,
    );
  }
  if (spec.takesCommand !== true && end >= 0) positionals.push(...command.splice(0));
  const needed = spec.positionals.filter((positional) => !positional.endsWith('?'));
  if (positionals.length < needed.length) {
    throw new UsageError(`${needed[positionals.length]} is missing; see: pawl help ${name}.`);
  }
  const extra = positionals[spec.positionals.length];
  if (extra !== undefined) {
    const hint = spec.takesCommand === true ? ' Write the command to run after "--".' : '';
    throw new UsageError(`"${extra}" is one argument too many.${hint} See: pawl help ${name}.`);
  }
  const overruled = overruledBy(name, spec, values);
  const options: Record<string, unknown> = {};
  for (const [option, optionSpec] of Object.entries(spec.options)) {
    const { env: _, ...withoutEnv } = optionSpec;
    const read = overruled.has(option) ? withoutEnv : optionSpec;
    options[option] = valueFor(name, option, read, values[option]);
  }
  return { options, positionals, command } as Parsed<C>;
}

/** What stands on the command line for an option. */
type Given = string | boolean | readonly string[] | undefined;

function split(
  name: string,
  spec: CommandSpec,
  args: readonly string[],
): { values: Record<string, Given>; positionals: string[] } {
  const options = Object.fromEntries(
    Object.entries(spec.options).map(([option, { type, short }]) => [
      option,
      {
        type: type === 'flag' ? ('boolean' as const) : ('string' as const),
        multiple: type === 'list',
        ...(short === undefined ? {} : { short }),
      },
    ]),
  );
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options,
      allowPositionals: true,
      strict: true,
    });
    return { values: values as Record<string, Given>, positionals };
  } catch (cause) {
    const [said] = String(cause instanceof Error ? cause.message : cause).split(/\. |\n/);
    throw new UsageError(`${said}; see: pawl help ${name}.`, { cause });
  }
}

/** Of two options in place of each other: the one that is not on the command line, if the other is. */
function overruledBy(
  name: string,
  spec: CommandSpec,
  values: Readonly<Record<string, Given>>,
): ReadonlySet<string> {
  const overruled = new Set<string>();
  for (const [option, { inPlaceOf: other }] of Object.entries(spec.options)) {
    if (other === undefined) continue;
    if (values[option] !== undefined && values[other] !== undefined)
      throw new UsageError(`--${option} and --${other} cannot be given together; see: pawl help ${name}.`);
    if (values[option] !== undefined) overruled.add(other);
    if (values[other] !== undefined) overruled.add(option);
  }
  return overruled;
}

function valueFor(
  command: string,
  option: string,
  spec: OptionSpec,
  given: Given,
): string | number | boolean | bigint | readonly string[] | undefined {
  // A variable that is set to nothing counts as one that is not set.
  const inherited = spec.env === undefined ? undefined : process.env[spec.env] || undefined;
  if (spec.type === 'flag') return given === true || isSet(spec.env, inherited);
  const text =
    typeof given === 'string' ? given : Array.isArray(given) ? given.join(',') : (inherited ?? spec.default);
  if (text === undefined) {
    if (spec.required) throw new UsageError(`--${option} is missing; see: pawl help ${command}.`);
    return undefined;
  }
  switch (spec.type) {
    case 'text':
      if (text === '') throw new UsageError(`--${option} is empty; give it ${spec.value}.`);
      return text;
    case 'list': {
      const names = text.split(',').map((name) => name.trim());
      if (names.includes('')) {
        throw new UsageError(
          `--${option} has an empty name; give it ${spec.value}, with commas between them.`,
        );
      }
      return names;
    }
    case 'duration':
      return parseDuration(option, text);
    case 'count':
      if (!/^\d{1,15}$/.test(text))
        throw new UsageError(`--${option} must be a whole number, but was "${text}".`);
      return Number(text);
    case 'share':
      if (!/^(0(\.\d+)?|1(\.0+)?)$/.test(text)) {
        throw new UsageError(`--${option} must be a number from 0 to 1, but was "${text}".`);
      }
      return Number(text);
    case 'token': {
      const token = parseToken(text);
      if (token === undefined)
        throw new UsageError(`--${option} must be a token, such as 42, but was "${text}".`);
      return token;
    }
  }
}

/** A flag cannot be taken back, so its variable has one meaning. */
function isSet(variable: string | undefined, inherited: string | undefined): boolean {
  if (inherited === undefined || inherited === '1' || inherited === 'true') return inherited !== undefined;
  throw new UsageError(`$${variable} must be 1, or not be set, but was "${inherited}".`);
}

const UNITS_MS: Readonly<Record<string, number>> = { '': 1, ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

function parseDuration(option: string, text: string): number {
  const [, digits, unit = ''] = text.match(/^(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h)?$/) ?? [];
  // In whole thousandths of the unit, since 1.001 * 1000 is a little less than 1001.
  const thousandths = Math.round(Number(digits) * 1000) * (UNITS_MS[unit] ?? Number.NaN);
  if (Number.isSafeInteger(thousandths) && thousandths % 1000 === 0) return thousandths / 1000;
  throw new UsageError(
    `--${option} must be a time such as 500ms, 10s, 2m or 1h, in whole ms, but was "${text}".`,
  );
}
