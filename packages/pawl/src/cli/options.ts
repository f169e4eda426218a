import type { EXIT } from './exit-codes.ts';
import { ADDRESS_FORMS } from './store-address.ts';

/**
 * The commands and their options, as data. Parsing, the help and the reference page all come from this table, so none of them
 * can forget an option that another knows.
 */

/** What a value on the command line is turned into. */
export interface OptionTypes {
  /** `500ms`, `10s`, `2m`, `1h`, or a plain number of ms. In ms. */
  duration: number;
  text: string;
  /** A whole number from 0. */
  count: number;
  /** A number from 0 to 1. */
  share: number;
  token: bigint;
  flag: boolean;
}

export interface OptionSpec {
  readonly type: keyof OptionTypes;
  /** One letter that may stand for the name. */
  readonly short?: string;
  /** What stands for the value in the help. */
  readonly value?: string;
  readonly meaning: string;
  /** The environment variable that is read where the option is not given. */
  readonly env?: string;
  /** Used where neither is given, written as on the command line. */
  readonly default?: string;
  /** What is used then where it is no constant, in words. */
  readonly otherwise?: string;
  readonly required?: true;
}

export interface CommandSpec {
  readonly meaning: string;
  /** What it does in full, for its own help and the reference. */
  readonly details?: string;
  /** Names of what stands without an option; one that ends in `?` may be left out. */
  readonly positionals: readonly string[];
  /** Whether a command to run follows after `--`. */
  readonly takesCommand?: true;
  readonly examples?: readonly string[];
  /** How it can end other than `ok`, or by what can happen to every command: `usage` and `internal`. */
  readonly exits?: readonly (keyof typeof EXIT)[];
  readonly options: Readonly<Record<string, OptionSpec>>;
}

const db = {
  type: 'text',
  value: 'STORE',
  env: 'PAWL_DB',
  meaning: `the store: ${ADDRESS_FORMS}`,
  otherwise: 'pawl/pawl.db in $XDG_STATE_HOME or ~/.local/state',
} as const satisfies OptionSpec;

const json = {
  type: 'flag',
  meaning: 'print JSON; tokens are decimal strings',
} as const satisfies OptionSpec;

export const COMMANDS = {
  run: {
    meaning: 'run a command while holding a lock',
    details:
      'The command is started without a shell, in a session and process group of its own, and sees PAWL_LOCK and PAWL_TOKEN. ' +
      'Signals are passed on to the group. If the lease is at risk the group gets SIGTERM, and SIGKILL before the lease ends; ' +
      'what is left of the group when the command exits is ended too, before the lock is released.\n\n' +
      'The command can read from the terminal and write to it, and Ctrl-C reaches it through pawl. But it has no controlling ' +
      'terminal: /dev/tty cannot be opened, and Ctrl-Z does not stop it, since a holder that is stopped loses its lease.\n\n' +
      'If pawl itself is killed or stopped, the command goes on while the lease runs out. Only a fence that is given its token ' +
      'refuses what it then writes.',
    positionals: ['LOCK'],
    takesCommand: true,
    examples: [
      'pawl run deploy --wait 30s -- ./deploy.sh',
      'pawl run report --wait 0 -- sh -c \'echo "token $PAWL_TOKEN"\'',
    ],
    exits: ['unavailable', 'notAcquired', 'lost', 'notExecutable', 'notFound'],
    options: {
      ttl: {
        type: 'duration',
        value: 'TIME',
        default: '10s',
        meaning: 'how long a dead holder blocks the others',
      },
      wait: {
        type: 'duration',
        short: 'w',
        value: 'TIME',
        meaning: 'how long to wait for the lock, 0 for one attempt',
        otherwise: 'no limit',
      },
      shared: { type: 'flag', short: 's', meaning: 'hold it together with other shared holders' },
      db,
    },
  },
  ls: {
    meaning: 'list the locks in use',
    positionals: ['PREFIX?'],
    examples: ['pawl ls', 'pawl ls invoice: --json'],
    exits: ['unavailable'],
    options: { json, db },
  },
  inspect: {
    meaning: 'show one lock: holders, queue, the last forced release',
    positionals: ['LOCK'],
    examples: ['pawl inspect deploy'],
    exits: ['unavailable'],
    options: { json, db },
  },
  break: {
    meaning: 'take a lock away from its holder',
    details:
      'Names the token that is meant, so that no newer holder is hit. The holder is told to stop, but may still be at work: ' +
      'only a fence at the resource refuses what it writes.',
    positionals: ['LOCK'],
    examples: ["pawl break deploy --token 42 --reason 'the host is gone'"],
    exits: ['failed', 'unavailable'],
    options: {
      token: {
        type: 'token',
        value: 'N',
        required: true,
        meaning: 'the token of the grant, as inspect shows it',
      },
      reason: { type: 'text', value: 'TEXT', required: true, meaning: 'why; it is recorded' },
      by: { type: 'text', value: 'WHO', meaning: 'on whose word', otherwise: 'the user' },
      slot: { type: 'count', value: 'N', meaning: 'which of several holders with the same token' },
      json,
      db,
    },
  },
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
