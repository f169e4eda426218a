import type { OptionSpec } from './option-spec.ts';
import { ADDRESS_FORMS } from './store-address.ts';

/* Options that several commands take. */

export const db = {
  type: 'text',
  value: 'STORE',
  env: 'PAWL_DB',
  meaning: `the store: ${ADDRESS_FORMS}`,
  otherwise: 'pawl/pawl.db in $XDG_STATE_HOME or ~/.local/state',
} as const satisfies OptionSpec;

export const server = {
  type: 'text',
  value: 'URL',
  env: 'PAWL_SERVER',
  meaning:
    'a server (pawl serve) in place of a store; several URLs with commas. Its token is read from $PAWL_SERVER_TOKEN, and who signed its certificate from the file $PAWL_SERVER_CA',
  inPlaceOf: 'db',
} as const satisfies OptionSpec;

export const json = {
  type: 'flag',
  meaning: 'print JSON; tokens are decimal strings',
} as const satisfies OptionSpec;
