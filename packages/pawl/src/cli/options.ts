import { db, json } from './common-options.ts';
import { FENCE_COMMANDS } from './fence-commands.ts';
import { LOCK_COMMANDS } from './lock-commands.ts';
import type { CommandSpec, OptionTypes } from './option-spec.ts';
import { SERVICE_COMMANDS } from './service-commands.ts';

export type { CommandSpec, OptionSpec, OptionTypes } from './option-spec.ts';

/**
 * The commands and their options, as data. Parsing, the help and the reference page all come from this table, so none of them
 * can forget an option that another knows.
 */
export const COMMANDS = {
  ...LOCK_COMMANDS,
  ...FENCE_COMMANDS,
  ...SERVICE_COMMANDS,
  engines: {
    meaning: 'show what each engine promises, and what is wrong with the settings of yours',
    positionals: [],
    examples: ['pawl engines', 'pawl engines --db locks.db'],
    exits: ['unavailable'],
    options: {
      json,
      db: {
        type: 'text',
        value: 'STORE',
        meaning: 'a store to ask for its settings, as other commands take it',
        otherwise: 'none is asked',
      },
    },
  },
  migrate: {
    meaning: 'make the layout in a store, or bring it up to this version',
    details:
      'Every other command does that too, on first use. This one is for where the program itself has no right to create tables: run it ' +
      'with an account that has.',
    positionals: [],
    examples: ['pawl migrate --db locks.db'],
    exits: ['unavailable'],
    options: { json, db },
  },
  'token-floor': {
    meaning: 'make all later tokens higher, after an old backup was restored',
    details:
      'A restored store would grant tokens once more that fences have honoured already, and they would refuse every holder. ' +
      'Give the highest token that their errors name. Tokens never become lower.',
    positionals: [],
    examples: ['pawl token-floor --at-least 1000000'],
    exits: ['unavailable'],
    options: {
      'at-least': { type: 'token', value: 'N', required: true, meaning: 'later tokens are higher than this' },
      json,
      db,
    },
  },
  lab: {
    meaning: 'the lessons: why a correct lock is not enough, measured',
    positionals: [],
    options: {
      block: { type: 'count', value: 'N', meaning: 'one block with those it builds on' },
      quiet: { type: 'flag', meaning: 'the assembly alone' },
      verify: { type: 'flag', meaning: 'derive every claim anew, and fail if one does not hold' },
      predict: { type: 'flag', meaning: 'ask what you expect before showing what was measured' },
      list: { type: 'flag', meaning: 'list the blocks' },
      plot: { type: 'text', value: 'DIR', meaning: 'write the curves as SVG' },
      json,
    },
  },
  advise: {
    meaning: 'measure this host and say which TTL fits it',
    positionals: [],
    options: {
      for: { type: 'duration', value: 'TIME', default: '30s', meaning: 'how long to measure' },
      work: { type: 'duration', value: 'TIME', default: '500ms', meaning: 'mean of the work under the lock' },
      crashes: {
        type: 'share',
        value: 'SHARE',
        default: '0.001',
        meaning: 'share of holders that die while they hold',
      },
      pauses: { type: 'text', value: 'FILE', meaning: 'pauses in ms, one a line, instead of measuring' },
      json,
      db: {
        type: 'text',
        value: 'STORE',
        meaning: 'a store whose round trips to measure',
        otherwise: 'none',
      },
    },
  },
  torture: {
    meaning:
      'what locks lose while their holders are stopped, killed, throttled and cut off: Pawl and others',
    details:
      'Real processes add 1 to a counter under a lock, with and without the fence, while a nemesis injures them and restarts the servers. It counts what was lost, what the ' +
      'fence refused, and how long nobody could work; see docs/torture.md.\n\n' +
      'Targets: sqlite, postgres, redis, etcd and zookeeper are Pawl on that engine; advisory-locks, set-nx-px, redis-semaphore, verrou, redlock, etcd3 and ' +
      'zookeeper-recipe are peers. The servers are those on PATH, started on free ports with their files in temporary directories; no server that runs already is touched, and ' +
      'nothing is installed. A target whose server or npm package is not there is skipped by name.',
    positionals: [],
    examples: ['pawl torture --target sqlite --seconds 1 --svg torture.svg'],
    exits: ['failed', 'unavailable'],
    options: {
      target: {
        type: 'list',
        value: 'NAMES',
        meaning: 'what to torture, with commas or given more than once',
        otherwise: 'all',
      },
      quick: { type: 'flag', meaning: 'two servers at once and for less time: all targets within 2 minutes' },
      seconds: {
        type: 'count',
        value: 'N',
        meaning: 'for how long each target is tortured; every injury is done at least once',
        otherwise: '30, with --quick 5',
      },
      svg: { type: 'text', value: 'FILE', meaning: 'draw the result too', otherwise: 'no file' },
      json,
    },
  },
  demo: {
    meaning: 'two real processes, one paused for too long: with the fence, and without',
    positionals: [],
    exits: ['failed'],
    options: {},
  },
  help: {
    meaning: 'show this, or one command',
    positionals: ['COMMAND?'],
    options: { markdown: { type: 'flag', meaning: 'print the reference page' } },
  },
  version: { meaning: 'show the version', positionals: [], options: {} },
} as const satisfies Record<string, CommandSpec>;

export type CommandName = keyof typeof COMMANDS;

type Options<C extends CommandName> = (typeof COMMANDS)[C]['options'];

/** The value of an option: always there for flags and where there is a default or it is required. */
type Value<O> = O extends { readonly type: infer T extends keyof OptionTypes }
  ? O extends { readonly type: 'flag' } | { readonly default: string } | { readonly required: true }
    ? OptionTypes[T]
    : OptionTypes[T] | undefined
  : never;

export interface Parsed<C extends CommandName> {
  readonly options: { readonly [K in keyof Options<C>]: Value<Options<C>[K]> };
  readonly positionals: readonly string[];
  /** What follows after `--`. */
  readonly command: readonly string[];
}

export function isCommandName(name: string): name is CommandName {
  return Object.hasOwn(COMMANDS, name);
}
