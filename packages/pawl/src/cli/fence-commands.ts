import { json } from './common-options.ts';
import type { CommandSpec } from './option-spec.ts';

/** Commands about fences. */
export const FENCE_COMMANDS = {
  'fence-write': {
    meaning: 'replace the content of a file, but only under a current token',
    details:
      'Reads the new content from its input, to the end, and puts it in the place of the old in one step. A token lower than the ' +
      'highest that the file has honoured is refused. What the file has honoured stands beside it, in FILE.pawl-fence.\n\n' +
      'A script that reads the file before it writes calls this with --raise first: from then on nobody who held the lock before ' +
      'can write in between.',
    positionals: ['FILE'],
    examples: [
      "echo 'port = 80' | pawl fence-write app.conf --token 42",
      "pawl run app.conf -- sh -c 'date | pawl fence-write deployed-at'",
    ],
    exits: ['failed', 'unavailable'],
    options: {
      token: {
        type: 'token',
        value: 'N',
        env: 'PAWL_TOKEN',
        required: true,
        meaning: 'the token of the lease under which it is written',
      },
      raise: { type: 'flag', meaning: 'write nothing: only refuse older tokens from now on' },
    },
  },
  fence: {
    meaning: 'guard tables against writes without a token: install, report or remove',
    details:
      'A guard is a trigger that looks at every write to a table, whoever wrote the SQL: does its transaction carry a token that is still ' +
      'the highest? The safe way to move a live system over:\n\n' +
      '- install --table T --audit: such writes are recorded, and pass.\n' +
      '- report: which programs and statements still write without the fence. Change them, until nothing new comes.\n' +
      '- install --table T --enforce: such writes are refused, with a message that says how to fix them.\n' +
      '- remove --table T: the guard is gone, and what it has recorded.\n\n' +
      'In Postgres the account has to own the table.',
    positionals: ['ACTION'],
    exits: ['failed', 'unavailable'],
    options: {
      db: {
        type: 'text',
        value: 'DATABASE',
        required: true,
        meaning: 'the database of the table: a SQLite file, or postgres://…',
      },
      table: { type: 'text', value: 'NAME', meaning: 'the table, to install or remove' },
      resource: {
        type: 'text',
        value: 'NAME',
        meaning: 'whose token a write needs; {column} stands for a value of the row, as in invoice:{id}',
        otherwise: 'any resource',
      },
      audit: { type: 'flag', meaning: 'record writes without a current token, and let them pass' },
      enforce: { type: 'flag', meaning: 'refuse them' },
      fence: {
        type: 'text',
        value: 'NAME',
        meaning: 'where the fence keeps its state: a schema in Postgres, a table in SQLite',
        otherwise: 'pawl_fence',
      },
      json,
    },
  },
} as const satisfies Record<string, CommandSpec>;
