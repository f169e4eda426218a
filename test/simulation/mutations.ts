/**
 * Whether the simulation finds defects: each of these is put into a copy of the sources, and the simulation is run on it. `npm run
 * sim:mutations` ends with 1 where one is not found within a minute.
 */
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Mutation {
  readonly defect: string;
  /** In `packages/pawl/src`. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

export const MUTATIONS: readonly Mutation[] = [
  {
    defect: 'the fence accepts lower tokens',
    file: 'fences/bearer.ts',
    from: 'token < highest',
    to: 'token < 0n',
  },
  {
    defect: 'the fence refuses an equal token',
    file: 'fences/bearer.ts',
    from: 'token < highest',
    to: 'token <= highest',
  },
  {
    defect: 'there is always room',
    file: 'core/holders.ts',
    from: 'if (lock.holders.length === 0) return true;',
    to: 'if (lock.holders.length >= 0) return true;',
  },
  {
    defect: 'a holder is told from others by its session alone',
    file: 'core/holders.ts',
    from: 'holder.session === id.session && holder.request === id.request',
    to: 'holder.session === id.session',
  },
  {
    defect: 'all permits are slot 0',
    file: 'core/holders.ts',
    from: 'while (taken.has(slot)) slot += 1;',
    to: '',
  },
  {
    defect: 'shared holders of one run have tokens of their own',
    file: 'core/holders.ts',
    from: 'joinsRun ? first.token : undefined',
    to: 'joinsRun ? undefined : undefined',
  },
  {
    defect: 'an acquire that is repeated after its grant is a new one',
    file: 'core/acquire.ts',
    from: 'if (known !== null) return repeat(draft, command, known);',
    to: "if (known !== null && known.state !== 'held') return repeat(draft, command, known);",
  },
  {
    defect: 'locks are not guarded',
    file: 'core/draft.ts',
    from: 'for (const { name, version } of this.#locks.values()) guards.push({ key: lockKey(name), version });',
    to: '',
  },
  {
    defect: 'sessions need not be alive',
    file: 'core/draft.ts',
    from: 'alive: [...this.#alive]',
    to: 'alive: []',
  },
  {
    defect: 'a later write of a record changes its tokens',
    file: 'core/records.ts',
    from: 'token: holder.token === undefined ? version : readToken(key, holder.token),',
    to: 'token: holder.token === undefined ? version : readToken(key, String(version)),',
  },
  {
    defect: 'a cancelled acquire stays in the queue',
    file: 'core/leave.ts',
    from: 'withdraw(draft, command, known);\n  if (known !== null || !command.forget)',
    to: 'if (known !== null || !command.forget)',
  },
  {
    defect: 'nobody buries the dead',
    file: 'node/undertaker.ts',
    from: 'await this.#removeRequests(session, true);',
    to: '',
  },
  {
    defect: 'lost wakes are not made up for',
    file: 'node/waiting-room.ts',
    from: 'this.#options.pollMs,',
    to: 'this.#options.pollMs * 1e6,',
  },
  {
    defect: 'the deadline counts from the reply to a renewal',
    file: 'client/session.ts',
    from: 'this.#renewedAt = sentAt;',
    to: 'this.#renewedAt = now(clock);',
  },
  {
    defect: 'the deadline counts by the monotonic clock alone',
    file: 'client/deadline.ts',
    from: 'clock.wallMs() - then.wallMs,\n    clock.sinceBootMs() - then.sinceBootMs,',
    to: '',
  },
  {
    defect: 'assertHeld trusts a timer to notice the deadline',
    file: 'client/hold.ts',
    from: 'if (this.inForce) this.session.checkDeadline();',
    to: '',
  },
  {
    defect: 'an acquire that failed leaves behind what it asked for',
    file: 'client/application.ts',
    from: 'await this.#cleanUp();\n      throw error;',
    to: 'throw error;',
  },
  {
    defect: 'a release does not let the next in, and nobody looks',
    file: 'core/leave.ts',
    from: 'for (const name of held) replaceHolder(draft.lock(name), command);',
    to: '',
  },
];

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The file with its defect. @throws Error where the sources have moved on from under the mutation. */
export function mutated({ defect, file, from, to }: Mutation): string {
  const text = readFileSync(join(ROOT, 'packages/pawl/src', file), 'utf8');
  if (!text.includes(from)) throw new Error(`"${defect}" does not fit ${file} any more.`);
  return text.replace(from, to);
}

/**
 * @param from the first seed; taken from the time unless set.
 * @returns what the simulation said where it found the defect, or `undefined`.
 */
export async function findMutation(
  mutation: Mutation,
  seconds: number,
  from?: number,
): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-mutation-'));
  try {
    cpSync(join(ROOT, 'packages/pawl/src'), join(folder, 'packages/pawl/src'), { recursive: true });
    cpSync(join(ROOT, 'packages/pawl/package.json'), join(folder, 'packages/pawl/package.json'));
    cpSync(join(ROOT, 'test/simulation'), join(folder, 'test/simulation'), { recursive: true });
    cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'packages/pawl/src', mutation.file), mutated(mutation));
    const options = ['--seconds', String(seconds), ...(from === undefined ? [] : ['--from', String(from)])];
    return await played(join(folder, 'test/simulation/main.ts'), options);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function played(main: string, options: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [main, ...options], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    child.stdout.on('data', (chunk) => {
      said += chunk;
      // It goes on to look for a smaller run; that it was found is enough here.
      if (said.includes('breaks a promise') && said.split('\n').length > 2) child.kill('SIGKILL');
    });
    child.stderr.on('data', (chunk) => {
      said += chunk;
    });
    child.on('close', (code) => {
      if (code === 0) resolve(undefined);
      else resolve(said.split('\n').slice(0, 2).join(' '));
    });
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  let missed = 0;
  for (const mutation of MUTATIONS) {
    const startedAt = performance.now();
    const found = await findMutation(mutation, 60);
    const took = ((performance.now() - startedAt) / 1000).toFixed(1);
    console.log(`${found === undefined ? 'MISSED' : 'found '} ${took.padStart(6)} s  ${mutation.defect}`);
    if (found === undefined) missed += 1;
    else console.log(`                 ${found.slice(0, 160)}`);
  }
  console.log(`${MUTATIONS.length - missed} of ${MUTATIONS.length} found.`);
  process.exit(missed === 0 ? 0 : 1);
}
