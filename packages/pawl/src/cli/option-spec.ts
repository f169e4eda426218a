import type { EXIT } from './exit-codes.ts';

/** What a value on the command line is turned into. */
export interface OptionTypes {
  /** `500ms`, `10s`, `2m`, `1h`, or a plain number of ms. In ms. */
  duration: number;
  text: string;
  /** Names with commas, and the option may be given more than once. */
  list: readonly string[];
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
  /** The option that cannot be given with this one, and whose variable is not read then. */
  readonly inPlaceOf?: string;
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
