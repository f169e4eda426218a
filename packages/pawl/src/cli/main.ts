import { readFileSync } from 'node:fs';
import { isPawlError } from '../errors.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { helpText } from './help.ts';
import { type CommandName, isCommandName, type Parsed } from './options.ts';
import { parseCommand, UsageError } from './parse.ts';
import { printable } from './text.ts';

/** Each command calls one function; its file is loaded only when it runs, so that all start fast. */
const RUN: { readonly [C in CommandName]: (parsed: Parsed<C>) => Promise<number> } = {
  run: async (parsed) => (await import('./run.ts')).runUnderLock(parsed),
  ls: async (parsed) => (await import('./ls.ts')).ls(parsed),
  inspect: async (parsed) => (await import('./inspect.ts')).inspect(parsed),
  break: async (parsed) => (await import('./break.ts')).breakLock(parsed),
  'fence-write': async (parsed) => (await import('./fence-write.ts')).fenceWrite(parsed),
  fence: async (parsed) => (await import('./fence/fence.ts')).fence(parsed),
  engines: async (parsed) => (await import('./engines.ts')).engines(parsed),
  migrate: async (parsed) => (await import('./migrate.ts')).migrate(parsed),
  'token-floor': async (parsed) => (await import('./token-floor.ts')).tokenFloor(parsed),
  serve: async (parsed) => (await import('./serve.ts')).serve(parsed),
  token: async (parsed) => (await import('./token.ts')).token(parsed),
  top: async (parsed) => (await import('./top.ts')).top(parsed),
  lab: async (parsed) => (await import('./lab.ts')).lab(parsed),
  advise: async (parsed) => (await import('./advise.ts')).adviseTtl(parsed),
  torture: async (parsed) => (await import('./torture/torture.ts')).torture(parsed),
  demo: async () => (await import('./demo/demo.ts')).demo(),
  help: async ({ positionals, options }) => {
    process.stdout.write(helpText(positionals[0], options.markdown));
    return EXIT.ok;
  },
  version: async () => {
    const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    process.stdout.write(`${manifest.version}\n`);
    return EXIT.ok;
  },
};

/**
 * Runs one command.
 *
 * @param argv what stands after `pawl`.
 * @returns the exit code.
 */
export async function main(argv: readonly string[]): Promise<number> {
  const [first = 'help', ...rest] = argv;
  // What follows "--" is for the command to run.
  const own = rest.includes('--') ? rest.slice(0, rest.indexOf('--')) : rest;
  process.stdout.on('error', leaveQuietly);
  // Whatever reads the log of a server may end; the locks must not end with it.
  process.stderr.on('error', leaveQuietly);
  try {
    if (first === '--help' || first === '-h') return await run('help', []);
    if (first === '--version') return await run('version', []);
    if (!isCommandName(first)) throw new UsageError(`There is no command "${first}"; see: pawl help.`);
    if (own.includes('--help') || own.includes('-h')) return await run('help', [first]);
    return await run(first, rest);
  } catch (error) {
    report(error, own.includes('--json'));
    return exitCodeOf(error);
  }
}

function run<C extends CommandName>(name: C, args: readonly string[]): Promise<number> {
  return RUN[name](parseCommand(name, args));
}

function report(error: unknown, json: boolean): void {
  const { code, message } = isPawlError(error)
    ? error
    : {
        code: 'PAWL_INTERNAL',
        message: error instanceof Error ? (error.stack ?? error.message) : String(error),
      };
  if (json) process.stderr.write(`${JSON.stringify({ error: { code, message } })}\n`);
  else process.stderr.write(`pawl: ${isPawlError(error) ? printable(message) : message}\n`);
}

/** Whoever read the output may have read enough, as `head` does; then nobody misses the rest. */
function leaveQuietly(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
}
