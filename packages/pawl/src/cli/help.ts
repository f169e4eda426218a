import { EXIT, EXIT_MEANINGS } from './exit-codes.ts';
import { COMMANDS, type CommandName, type CommandSpec, isCommandName, type OptionSpec } from './options.ts';
import { UsageError } from './parse.ts';

/** The help of all commands, of one, or the reference page. @throws UsageError where there is no such command. */
export function helpText(command: string | undefined, markdown: boolean): string {
  if (markdown) return referencePage();
  if (command === undefined) return overview();
  if (!isCommandName(command)) throw new UsageError(`There is no command "${command}"; see: pawl help.`);
  return commandHelp(command);
}

const names = Object.keys(COMMANDS).filter(isCommandName);

function overview(): string {
  const lines = names.map((name) => `  ${name.padEnd(9)}${COMMANDS[name].meaning}`);
  return [
    'pawl: locks whose every grant carries a fencing token.',
    '',
    ...lines,
    '',
    'pawl help COMMAND tells the options.',
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
    return [
      `## ${name}`,
      '',
      `\`${usage(name)}\``,
      '',
      `${capital(spec.meaning)}.`,
      ...details,
      ...table,
      '',
    ].join('\n');
  });
  const codes = Object.entries(EXIT).map(
    ([name, code]) => `| ${code} | ${EXIT_MEANINGS[name as keyof typeof EXIT]} |`,
  );
  return [
    '# The command line',
    '',
    'This page is written by `pawl help --markdown`.',
    '',
    ...sections,
    '## Exit codes',
    '',
    '`run` exits with the code of its command, or with 128 + n if signal n ended it. Otherwise:',
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
    each.required ? left(option, each) : `[${left(option, each)}]`,
  );
  const rest = spec.takesCommand === true ? ['--', 'COMMAND…'] : [];
  return ['pawl', name, ...positionals, ...options, ...rest].join(' ');
}

function left(option: string, spec: OptionSpec): string {
  return spec.value === undefined ? `--${option}` : `--${option} ${spec.value}`;
}

function meaning(spec: OptionSpec): string {
  return spec.default === undefined ? spec.meaning : `${spec.meaning} (${spec.default} unless given)`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
