import { randomBytes } from 'node:crypto';
import { systemClock } from '../clock.ts';
import { hashToken, type KnownToken, type Right } from '../server/index.ts';
import { EXIT } from './exit-codes.ts';
import type { Parsed } from './options.ts';
import { UsageError } from './parse.ts';

const RIGHTS: readonly Right[] = ['acquire', 'read', 'break', 'admin'];

/** `pawl token` */
export async function token({ options, positionals }: Parsed<'token'>): Promise<number> {
  const [name = ''] = positionals;
  const rights = options.rights.split(',').map((right) => right.trim());
  for (const right of rights) {
    if (!isRight(right))
      throw new UsageError(`--rights must be made of ${RIGHTS.join(', ')}, but has "${right}".`);
  }
  const secret = randomBytes(32).toString('base64url');
  const { prefix = '', 'expires-in': expiresInMs } = options;
  const known: KnownToken = {
    name,
    sha256: hashToken(secret),
    permissions: [{ prefix, rights: rights.filter(isRight) }],
    ...(expiresInMs === undefined ? {} : { expiresAtMs: systemClock.wallMs() + expiresInMs }),
  };
  process.stderr.write('The token, shown this once; give it to the client:\n');
  process.stdout.write(`${secret}\n`);
  process.stderr.write(`Add this to the list in the file of pawl serve --auth:\n${JSON.stringify(known)}\n`);
  return EXIT.ok;
}

function isRight(text: string): text is Right {
  return (RIGHTS as readonly string[]).includes(text);
}
