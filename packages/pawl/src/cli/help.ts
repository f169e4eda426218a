import { EXIT, EXIT_MEANINGS, EXITS } from './exit-codes.ts';
import { COMMANDS, type CommandName, type CommandSpec, isCommandName, type OptionSpec } from './options.ts';
import { UsageError } from './parse.ts';

/** The help of all commands, of one, or the reference page. @throws UsageError where there is no such command. */
export function helpText(command: string | undefined, markdown: boolean): string {
  if (markdown) return referencePage();
  if (command === undefined) return overview();
  if (!isCommandName(command)) throw new UsageError(`There is no command "${command}"; see: pawl help.`);
  return commandHelp(command);
}

const COMMAND_EXITS = 'that of the command, or 128 + n if signal n ended it';

const names = Object.keys(COMMANDS).filter(isCommandName);

function overview(): string {
  const lines = names.map((name) => `  ${name.padEnd(13)}${COMMANDS[name].meaning}`);
  return [
    'pawl: locks whose every grant carries a fencing token.',
    '',
    ...lines,
    '',
    'pawl COMMAND --help tells its options and exit codes.',
    '',
  ].join('\n');
}

function commandHelp(name: CommandName): string {
  const spec: CommandSpec = COMMANDS[name];
  const options = Object.entries(spec.options);
  const width = Math.max(0, ...options.map(([option, each]) => left(option, each).length)) + 2;
  const lines = options.map(([option, each]) => `  ${left(option, each).padEnd(width)}${meaning(each)}`);
  const paragraphs = [`${usage(name)}\n\n${capital(spec.meaning)}.`];
  if (spec.details !== undefined) paragraphs.push(spec.details);
  if (lines.length > 0) paragraphs.push(lines.join('\n'));
  if (spec.examples !== undefined) {
    paragraphs.push(['Examples:', ...spec.examples.map((example) => `  ${example}`)].join('\n'));
  }
  const codes = exitsOf(spec).map((exit) => `  ${String(EXIT[exit]).padStart(3)}  ${EXIT_MEANINGS[exit]}`);
  const own = spec.takesCommand === true ? [`       ${COMMAND_EXITS}`] : [];
  paragraphs.push(['Exit codes:', ...own, ...codes].join('\n'));
  return `${paragraphs.join('\n\n')}\n`;
}

function referencePage(): string {
  const sections = names.map((name) => {
    const spec: CommandSpec = COMMANDS[name];
    const rows = Object.entries(spec.options).map(
      ([option, each]) => `| \`${left(option, each)}\` | ${meaning(each)} |`,
    );
    const table = rows.length === 0 ? [] : ['', '| option | meaning |', '| --- | --- |', ...rows];
    const details = spec.details === undefined ? [] : ['', spec.details];
    const examples = spec.examples === undefined ? [] : ['', '```sh', ...spec.examples, '```'];
    const own = spec.takesCommand === true ? `; otherwise ${COMMAND_EXITS}` : '';
    const exits = [
      '',
      `Exit codes: ${exitsOf(spec)
        .map((exit) => EXIT[exit])
        .join(', ')}${own}.`,
    ];
    return [
      `## ${name}`,
      '',
      `\`${usage(name)}\``,
      '',
      `${capital(spec.meaning)}.`,
      ...details,
      ...table,
      ...examples,
      ...exits,
      '',
    ].join('\n');
  });
  const codes = EXITS.map((exit) => `| ${EXIT[exit]} | ${EXIT_MEANINGS[exit]} |`);
  return [
    '# The command line',
    '',
    'This page is written by `pawl help --markdown`.',
    '',
    ...sections,
    '## Exit codes',
    '',
    '| code | meaning |',
    '| --- | --- |',
    ...codes,
    '',
  ].join('\n');
}

function usage(name: CommandName): string {
  const spec: CommandSpec = COMMANDS[name];
  const positionals = spec.positionals.map((each) => (each.endsWith('?') ? `[${each.slice(0, -1)}]` : each));
  const options = Object.entries(spec.options).map(([option, each]) =>
    each.required ? long(option, each) : `[${long(option, each)}]`,
  );
  const rest = spec.takesCommand === true ? ['--', 'COMMAND…'] : [];
  return ['pawl', name, ...positionals, ...options, ...rest].join(' ');
}

function exitsOf(spec: CommandSpec): (keyof typeof EXIT)[] {
  return EXITS.filter(
    (exit) => exit === 'ok' || exit === 'usage' || exit === 'internal' || spec.exits?.includes(exit),
  );
}

function left(option: string, spec: OptionSpec): string {
  return spec.short === undefined ? long(option, spec) : `-${spec.short}, ${long(option, spec)}`;
}

function long(option: string, spec: OptionSpec): string {
  return spec.value === undefined ? `--${option}` : `--${option} ${spec.value}`;
}

function meaning(spec: OptionSpec): string {
  const otherwise = [spec.env && `$${spec.env}`, spec.default, spec.otherwise].filter(
    (each) => each !== undefined,
  );
  return otherwise.length === 0
    ? spec.meaning
    : `${spec.meaning} (unless given: ${otherwise.join(', else ')})`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
