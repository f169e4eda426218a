import type { GuardMode } from '../../fences/guard.ts';
import { EXIT } from '../exit-codes.ts';
import { toJson } from '../json.ts';
import type { Parsed } from '../options.ts';
import { UsageError } from '../parse.ts';
import { printable } from '../text.ts';
import { type GuardedDatabase, withDatabase } from './guarded-database.ts';
import { reportText } from './report-text.ts';

type Options = Parsed<'fence'>['options'];

/** Each looks at its options before the database is opened. @returns what to print, as data and as text. */
const ACTIONS: Readonly<Record<string, (options: Options) => Action>> = {
  install: (options) => {
    const [table, mode] = [tableOf('install', options), modeOf(options)];
    const { resource } = options;
    return async (database) => {
      await database.install({ table, mode, ...(resource === undefined ? {} : { resource }) });
      return {
        data: { table, mode, resource: resource ?? null },
        text: `The guard on ${printable(table)} ${EFFECT[mode]}\n`,
      };
    };
  },
  report: (options) => {
    only('report', options, []);
    return async (database) => {
      const report = await database.report();
      return { data: report, text: reportText(report) };
    };
  },
  remove: (options) => {
    only('remove', options, ['table']);
    const table = tableOf('remove', options);
    return async (database) => {
      await database.remove(table);
      return { data: { table, removed: true }, text: `There is no guard on ${printable(table)} any more.\n` };
    };
  },
};

type Action = (database: GuardedDatabase) => Promise<{ data: unknown; text: string }>;

const EFFECT: Readonly<Record<GuardMode, string>> = {
  audit:
    'records every write without a current token, and lets it pass. Let the programs run for a while, then see: pawl fence report',
  enforce: 'refuses every write without a current token.',
};

/** `pawl fence` */
export async function fence({ options, positionals }: Parsed<'fence'>): Promise<number> {
  const [name = ''] = positionals;
  const make = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
  if (make === undefined) {
    throw new UsageError(`"${name}" is no action; it is one of ${Object.keys(ACTIONS).join(', ')}.`);
  }
  const action = make(options);
  const { data, text } = await withDatabase(options.db, options.fence, action);
  process.stdout.write(options.json ? toJson(data) : text);
  return EXIT.ok;
}

function tableOf(action: string, { table }: Options): string {
  if (table !== undefined) return table;
  throw new UsageError(`--table is missing: which table? See: pawl help fence. It is needed to ${action}.`);
}

function modeOf({ audit, enforce }: Options): GuardMode {
  if (audit !== enforce) return audit ? 'audit' : 'enforce';
  throw new UsageError(
    'Give either --audit, to record writes without a token, or --enforce, to refuse them. Begin with --audit.',
  );
}

/** An option that is not for an action is more likely a mistake than a wish. */
function only(action: string, options: Options, allowed: readonly string[]): void {
  const { table, resource, audit, enforce } = options;
  for (const [name, value] of Object.entries({ table, resource, audit, enforce })) {
    if (value === undefined || value === false || allowed.includes(name)) continue;
    throw new UsageError(`--${name} is not for ${action}; see: pawl help fence.`);
  }
}
