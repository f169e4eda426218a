import { type ChildProcess, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export { freePort } from '../../src/lab/torture/servers/programs.ts';

/** Whether a command runs and succeeds. */
export function works(command: string, args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Installs a package of Debian's, where this process may; one after the other, since test files run side by side. */
export function installPackage(name: string): void {
  if (process.getuid?.() !== 0) return;
  const install = `apt-get install -y -qq ${name}`;
  const lock = join(tmpdir(), 'pawl-test-install.lock');
  works('flock', [lock, 'sh', '-c', `${install} || (apt-get update -qq && ${install})`]);
}

/** Ends a process, and resolves once it is gone; also where it has gone by itself. */
export async function endProcess(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  // One that was stopped does not end otherwise.
  child.kill('SIGCONT');
  await ended;
}

/** Runs the first program of `docs/<page>.md` that imports `pawl/<page>/<name>` and has `also` in it. @returns what it printed. */
export function runDocumented(
  name: string,
  environment: Readonly<Record<string, string>>,
  page = 'engines',
  also = '',
): string {
  const root = fileURLToPath(new URL('../../../../', import.meta.url));
  const programs = readFileSync(join(root, `docs/${page}.md`), 'utf8').matchAll(
    /^```typescript\n(.*?)^```/gms,
  );
  const program = [...programs]
    .map((match) => match[1] ?? '')
    .find((text) => text.includes(`pawl/${page}/${name}'`) && text.includes(also));
  if (program === undefined) throw new Error(`docs/${page}.md has no program for ${name}.`);
  // Inside the workspace, so that the program finds the package and the driver.
  const folder = mkdtempSync(join(root, 'test', '.snippets-'));
  try {
    writeFileSync(join(folder, 'program.ts'), program);
    const env = { ...process.env, ...environment };
    return execFileSync(process.execPath, ['--conditions=pawl-source', join(folder, 'program.ts')], {
      env,
      encoding: 'utf8',
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
