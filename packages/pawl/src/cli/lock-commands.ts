import { db, json, server } from './common-options.ts';
import type { CommandSpec } from './option-spec.ts';

/** Commands about locks: of a store, or of a server. */
export const LOCK_COMMANDS = {
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
    exits: ['unavailable', 'notAcquired', 'lost', 'notExecutable', 'notFound', 'forbidden'],
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
      server,
    },
  },
  ls: {
    meaning: 'list the locks in use',
    positionals: ['PREFIX?'],
    examples: ['pawl ls', 'pawl ls invoice: --json'],
    exits: ['unavailable', 'forbidden'],
    options: { json, db, server },
  },
  inspect: {
    meaning: 'show one lock: holders, queue, the last forced release',
    positionals: ['LOCK'],
    examples: ['pawl inspect deploy'],
    exits: ['unavailable', 'forbidden'],
    options: { json, db, server },
  },
  top: {
    meaning: 'watch the locks in use: holders, queues, grants',
    positionals: ['PREFIX?'],
    examples: ['pawl top --once'],
    exits: ['unavailable', 'forbidden'],
    options: {
      every: { type: 'duration', value: 'TIME', default: '1s', meaning: 'how often to look' },
      count: { type: 'count', value: 'N', meaning: 'how often', otherwise: 'until it is interrupted' },
      once: { type: 'flag', meaning: 'look once' },
      db,
      server,
    },
  },
  break: {
    meaning: 'take a lock away from its holder',
    details:
      'Names the token that is meant, so that no newer holder is hit. The holder is told to stop, but may still be at work: ' +
      'only a fence at the resource refuses what it writes.',
    positionals: ['LOCK'],
    examples: ["pawl break deploy --token 42 --reason 'the host is gone'"],
    exits: ['failed', 'unavailable', 'forbidden'],
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
      server,
    },
  },
} as const satisfies Record<string, CommandSpec>;
